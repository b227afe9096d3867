// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// Folder names are made from data that strangers control (branch names, ids that
// a service returns), so they follow one law: two different originals never make
// one name, even where letter case does not count, and a name depends on nothing
// but its own original.
//
// A name is either plain, that is the original as it is, or digested: what is
// readable of the original, then "-x" and twelve hexadecimal digits of a SHA-256
// of the original. A plain name never looks like a digested one, because an
// original that does is digested itself.

const (
	maxFolderName = 100 // bytes
	maxOwnerShown = 50  // bytes of the provider's name that a digested name shows at most
	digestDigits  = 12
)

// A setLabel is what an input set is called within the provider that it comes
// from: a pull request's number, a branch, a tenant.
type setLabel struct {
	inline bool   // written in the ResourceSet itself
	owner  string // the provider's name, or the ResourceSet's for an inline set
	text   string // unique among the sets of one owner
	shown  string // what a folder name shows of text
	digest bool   // the folder's name is always a digested one
}

// labelOf chooses the label of an input set. An id that is no checksum is the
// label. Where it is a checksum (the CRD's Adler-32 collides: v1.0.1 and v0.2.0
// have the same), the label is what was summed. A set without id is called by the
// values of nameFields, the fields that end up in the names of its objects, so
// that it keeps its folder when others change; failing those, by its content, as
// far as templates read it: read returns that much of an input set (all, if nil).
func labelOf(export Export, in api.Input, nameFields []string, read func(api.Input) api.Input) setLabel {
	label := setLabel{inline: export.Kind == api.KindResourceSet, owner: export.Name}
	if export.Type == api.TypeStatic && !label.inline {
		label.digest = true // one set, called as its provider
		return label
	}
	if fields := summedFields(export.Type); fields != nil && !label.inline {
		if text, ok := joinFields(in, fields); ok {
			label.text, label.shown, label.digest = text, text, true
			return label
		}
	}
	if id := scalarText(in["id"]); id != "" {
		label.text, label.shown = id, id
		return label
	}
	if text, ok := joinFields(in, nameFields); ok {
		label.text, label.shown = text, text
		return label
	}
	if read != nil {
		in = read(in)
	}
	label.text, label.digest = contentDigest(in), true
	return label
}

// summedFields are the fields that tell the sets of a provider apart where the
// exported id is a checksum of them; nil where the id is the item's own.
func summedFields(providerType string) []string {
	switch {
	case strings.HasSuffix(providerType, "Branch"):
		return []string{"branch"}
	case strings.HasSuffix(providerType, "Tag"):
		return []string{"tag"}
	case providerType == api.TypeGitRepositoryPath:
		return []string{"path"}
	case providerType == api.TypeExternalArtifact:
		return []string{"namespace", "name"}
	}
	return nil
}

// joinFields joins the values of those fields that in has, with "/". A "/" or "\"
// within a value is escaped when there are several fields, so that different
// values make different texts.
func joinFields(in api.Input, fields []string) (string, bool) {
	escape := strings.NewReplacer(`\`, `\\`, `/`, `\/`)
	var values []string
	found := false
	for _, field := range fields {
		value, ok := in[field]
		if field == "id" || field == "provider" {
			continue
		}
		text := ""
		if ok {
			text = scalarText(value)
		}
		found = found || text != ""
		if len(fields) > 1 {
			text = escape.Replace(text)
		}
		values = append(values, text)
	}
	return strings.Join(values, "/"), found
}

// scalarText is a JSON value as a template prints it; lists and maps are JSON.
func scalarText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case []any, map[string]any:
		if data, err := json.Marshal(v); err == nil {
			return string(data)
		}
	}
	return fmt.Sprint(value) // fmt sorts maps
}

// contentDigest stands for an input set that has nothing to be called by.
func contentDigest(in api.Input) string {
	data := make(api.Input, len(in))
	for key, value := range in {
		if key != "id" && key != "provider" {
			data[key] = value
		}
	}
	sum := sha256.Sum256([]byte(scalarText(data)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// folder is the name of the set's folder below the folder of ResourceSet rs.
func (l setLabel) folder(rs *api.ResourceSet) string {
	digest := l.digest || !l.inline && l.owner == rs.Name // inline sets have the plain names
	kind := "provider"
	if l.inline {
		kind = "inline"
	}
	return setName(kind, l.owner, l.text, l.shown, digest)
}

// permutationFolder is the name of the folder of a set that Permute made out of
// one set of each provider.
func permutationFolder(rs *api.ResourceSet, parts []setLabel) string {
	var text, shown []string
	for _, part := range parts {
		text = append(text, strconv.FormatBool(part.inline), part.owner, part.text)
		if part.shown != "" {
			shown = append(shown, part.shown)
		}
	}
	return setName("permutation", rs.Name, key(text...), strings.Join(shown, "-"), true)
}

// setName joins an owner and a label to a folder name. The join is ambiguous
// ("a" and "b-c", "a-b" and "c"), so a label with a dash is digested.
func setName(kind, owner, text, shown string, digest bool) string {
	name := owner + "-" + shown
	if strings.Contains(shown, "-") || text != shown || !isPlain(name) {
		digest = true
	}
	if !digest {
		return name
	}
	return digested(slug(cut(slug(owner), maxOwnerShown)+"-"+slug(shown)), maxFolderName, key(kind, owner, text))
}

// directoryName is the folder of an input set whose ResourceSet names it by the
// annotation renderer/directory; text is what that template gave.
func directoryName(text string) string {
	if isPlain(text) {
		return text
	}
	return digested(slug(text), maxFolderName, key("directory", text))
}

// Dir is the folder of a ResourceSet below the target path: its namespace and its
// name, made safe like the names of input sets.
func Dir(rs *api.ResourceSet) string {
	return directoryName(rs.Namespace) + "/" + directoryName(rs.Name)
}

// isPlain says that name can be a folder's name as it is.
func isPlain(name string) bool {
	return name != "" && len(name) <= maxFolderName && slug(name) == name &&
		!isReserved(name) && !looksDigested(name)
}

// digested is shown, cut so that the whole has at most max bytes, and a digest of key.
func digested(shown string, max int, key string) string {
	sum := sha256.Sum256([]byte(key))
	digest := "x" + hex.EncodeToString(sum[:])[:digestDigits]
	if stem, rest, ok := strings.Cut(shown, "."); ok && isDevice(stem) {
		shown = stem + "-" + rest // the digest at the end does not help: devices go by their start
	}
	shown = strings.Trim(cut(shown, max-len(digest)-1), "-.")
	if shown == "" {
		return digest
	}
	return shown + "-" + digest
}

// looksDigested says that name ends like one that digested made.
func looksDigested(name string) bool {
	if len(name) < digestDigits+1 {
		return false
	}
	tail := name[len(name)-digestDigits-1:]
	if tail[0] != 'x' || strings.Trim(tail[1:], "0123456789abcdef") != "" {
		return false
	}
	return len(name) == len(tail) || name[len(name)-len(tail)-1] == '-'
}

// slug keeps [a-z0-9.-] of text in lower case: a run of anything else, and any run
// of dots and dashes, becomes one dash (or one dot), and none is left at either end.
func slug(text string) string {
	var b strings.Builder
	var gap byte // what stands between the last letter and the next
	for i := 0; i < len(text); i++ {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			if gap != 0 && b.Len() > 0 {
				b.WriteByte(gap)
			}
			gap = 0
			b.WriteByte(c)
			continue
		}
		if c == '.' && (gap == 0 || gap == '.') {
			gap = '.'
		} else {
			gap = '-'
		}
	}
	return b.String()
}

// cut is at most the first max bytes of an ASCII text.
func cut(text string, max int) string {
	if len(text) <= max {
		return text
	}
	return text[:max]
}

// key joins texts so that different lists of texts make different keys.
func key(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(strconv.Itoa(len(text)))
		b.WriteByte(':')
		b.WriteString(text)
	}
	return b.String()
}

// isReserved says that a lower-case name means something else than a folder or a
// manifest of ours: our own names, what Flux's source-controller leaves out of an
// artifact by default, and the devices of Windows.
func isReserved(name string) bool {
	switch name {
	case sharedDir, kustomizationFile, LockFile, "kustomization.yml", "kustomization",
		"appveyor.yml", "cloudbuild.yaml", "codeship-services.yml", "codeship-steps.yml":
		return true
	}
	for _, ending := range []string{".jpg", ".jpeg", ".gif", ".png", ".wmv", ".flv", ".tar.gz", ".zip"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	stem, _, _ := strings.Cut(name, ".")
	return isDevice(stem)
}

// isDevice says that a lower-case name is a device on Windows, with any ending.
func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(stem) == 4 && (stem[:3] == "com" || stem[:3] == "lpt") && '0' <= stem[3] && stem[3] <= '9'
}

// Names that every ResourceSet's folder has.
const (
	// LockFile records what a ResourceSet's folder was rendered from.
	LockFile          = "inputs.lock"
	kustomizationFile = "kustomization.yaml"
	sharedDir         = "shared"
)
