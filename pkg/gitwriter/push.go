// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// A verdict is what the server said about a push. It is words: whether the branch moved
// is read back from the server.
type verdict struct {
	text     string // why not; empty when the server said that all is well
	accepted bool
	// moved is set when the server showed another head before anything was sent.
	moved bool
}

// push sends the proposal's objects and asks for the branch to move from the base to
// the proposal's head.
func (m *Mirror) push(ctx context.Context, p *proposal, pack []byte) (verdict, error) {
	var v verdict
	err := m.converse(ctx, serviceReceivePack, func(c *conversation) error {
		if c.listed && c.head(m.cfg.Branch) != p.base.Hash() {
			v = verdict{moved: true}
			return nil
		}
		var err error
		v, err = c.send(&packp.Command{
			Name: plumbing.NewBranchReferenceName(m.cfg.Branch), Old: p.base.Hash(), New: p.head,
		}, pack)
		return err
	})
	return v, err
}

// send asks for one reference to move. The pack is nil when it is to be deleted.
func (c *conversation) send(cmd *packp.Command, pack []byte) (verdict, error) {
	req := packp.NewReferenceUpdateRequest()
	for _, name := range []capability.Capability{capability.ReportStatus, capability.Sideband64k, capability.Atomic, capability.Quiet} {
		if c.refs.Capabilities.Supports(name) {
			mustSet(req.Capabilities, name)
		}
	}
	if c.refs.Capabilities.Supports(capability.Agent) {
		mustSet(req.Capabilities, capability.Agent, c.agent)
	}
	req.Commands = []*packp.Command{cmd}
	if pack != nil {
		req.Packfile = io.NopCloser(bytes.NewReader(pack))
	}
	answer, err := c.exchange(req.Encode)
	if err != nil {
		return verdict{}, err
	}
	v, err := c.readVerdict(req, answer)
	if err != nil || !v.accepted {
		_ = answer.Close() // what it says is known
		return v, err
	}
	c.rest = answer
	return v, nil
}

// readVerdict reads the report, and what hooks said beside it.
func (c *conversation) readVerdict(req *packp.ReferenceUpdateRequest, answer io.Reader) (verdict, error) {
	if !req.Capabilities.Supports(capability.ReportStatus) {
		return verdict{text: "the server gives no report"}, nil
	}
	said := &tail{}
	if req.Capabilities.Supports(capability.Sideband64k) {
		demuxer := sideband.NewDemuxer(sideband.Sideband64k, answer)
		demuxer.Progress = said
		answer = demuxer
	}
	report := packp.NewReportStatus()
	if err := report.Decode(answer); err != nil {
		if text := said.String(); text != "" && context.Cause(c.ctx) == nil {
			return verdict{}, c.classify(text)
		}
		return verdict{}, c.unexpected(err)
	}
	if report.UnpackStatus == "ok" && len(report.CommandStatuses) == 1 && report.CommandStatuses[0].Error() == nil {
		return verdict{accepted: true}, nil
	}
	var words []string
	if report.UnpackStatus != "ok" {
		words = append(words, "unpack: "+report.UnpackStatus)
	}
	for _, status := range report.CommandStatuses {
		if status.Error() != nil {
			words = append(words, status.Status)
		}
	}
	if text := said.String(); text != "" {
		words = append(words, text)
	}
	return verdict{text: c.hide.text(strings.Join(words, ": "))}, nil
}

// isContention tells words of a server whose branch is just being moved by somebody
// else. The branch may still look unmoved then.
func (v verdict) isContention() bool {
	text := strings.ToLower(v.text)
	for _, phrase := range []string{"cannot lock ref", "failed to lock", "failed to update ref", ".lock': file exists",
		"non-fast-forward", "fetch first", "stale info", "incorrect old value", "reference already exists", "but expected"} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}
