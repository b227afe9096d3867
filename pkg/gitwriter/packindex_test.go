// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"resourceset.example/renderer/internal/gittest"
)

// historyRepo has files that change a little from commit to commit, one that is larger
// than what is kept in memory, and one that does not compress.
func historyRepo(t testing.TB) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 60_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	lines := make([]string, 400)
	for i := range lines {
		lines[i] = fmt.Sprintf("key-%d: %x", i, random.Uint64())
	}
	for n := range 6 {
		lines[n*61] = fmt.Sprint("changed ", n)
		text := strings.Join(lines, "\n")
		clone.Write(map[string]string{
			"a.yaml": text, "b/c.yaml": text[:100+n*300], "b/d.yaml": strings.ToUpper(text), fmt.Sprintf("n/%d", n): fmt.Sprint(n),
			"noise": fmt.Sprint(n) + string(noise), "large": strings.Repeat(fmt.Sprint("row ", n/4, "\n"), (maxKept+1<<16)/6),
		})
		if err := os.WriteFile(filepath.Join(clone.Dir, "empty"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		clone.Git("add", "-A")
		clone.Git("commit", "--quiet", "-m", fmt.Sprint(n))
	}
	clone.Git("tag", "-a", "-m", "an object of its own", "v1")
	clone.Git("push", "--quiet", "--tags", "origin", "HEAD:main")
	return repo
}

// packOf is the one pack that a repository is put into.
func packOf(t testing.TB, repo *gittest.Repo, offsets bool, window int) (pack, index []byte) {
	t.Helper()
	repo.Git("-c", fmt.Sprintf("repack.useDeltaBaseOffset=%t", offsets), "repack", "-a", "-d", "-f", "-q",
		"--depth=50", fmt.Sprintf("--window=%d", window))
	paths, err := filepath.Glob(filepath.Join(repo.Dir, "objects", "pack", "*.pack"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	return mustRead(t, paths[0]), mustRead(t, strings.TrimSuffix(paths[0], ".pack")+".idx")
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// indexed runs an indexer over a pack and returns the index.
func indexed(t testing.TB, pack io.Reader, cache int) (*packIndexer, []byte, error) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "pack")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	x := newPackIndexer(file, cache)
	sum, err := x.run(context.Background(), pack)
	if err != nil {
		return nil, nil, err
	}
	var index bytes.Buffer
	if err := writeIndex(&index, x.entries, sum); err != nil {
		t.Fatal(err)
	}
	return x, index.Bytes(), nil
}

// The same index, byte for byte, as `git index-pack` makes.
func TestPackIndexEqualsGits(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	repo := historyRepo(t)
	for _, kind := range []struct {
		name    string
		offsets bool
		window  int
	}{{"offset deltas", true, 20}, {"reference deltas", false, 20}, {"no deltas", true, 0}} {
		pack, want := packOf(t, repo, kind.offsets, kind.window)
		for _, cache := range []int{0, 30_000, indexCache} {
			t.Run(fmt.Sprintf("%s/cache %d", kind.name, cache), func(t *testing.T) {
				x, got, err := indexed(t, bytes.NewReader(pack), cache)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("another index of %d objects: %d bytes, git has %d", len(x.entries), len(got), len(want))
				}
				if x.cache.size > cache || (x.cache.size == 0) != (len(x.cache.items) == 0) {
					t.Errorf("%d bytes in a cache of %d", x.cache.size, cache)
				}
				if !bytes.Equal(mustRead(t, x.file.Name()), pack) {
					t.Error("another pack on disk")
				}
			})
		}
	}
}

// However it arrives, byte by byte included, and with words of the server behind it.
func TestPackArrivesInPieces(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "x", map[string]string{"a": strings.Repeat("line\n", 1000), "b": "2", "c/d": "3"})
	pack, want := packOf(t, repo, true, 10)
	for name, reader := range map[string]io.Reader{
		"bytes": iotest.OneByteReader(bytes.NewReader(pack)), "halves": iotest.HalfReader(bytes.NewReader(pack)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(pack)), "more": bytes.NewReader(append(bytes.Clone(pack), "more"...)),
	} {
		_, got, err := indexed(t, reader, indexCache)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is left behind of a pack that is damaged, cut off, or that rests on others.
func TestDamagedPackIsRefused(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "x", map[string]string{"a": strings.Repeat("line of text\n", 100), "b": strings.Repeat("line of text\n", 99) + "x"})
	pack, _ := packOf(t, repo, true, 10)
	dir := t.TempDir()
	refused := func(name string, data []byte) {
		t.Helper()
		if err := writePackFiles(t.Context(), dir, bytes.NewReader(data)); err == nil {
			t.Errorf("%s was accepted", name)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Fatalf("%s: left behind: %v", name, left)
		}
	}
	for n := range pack {
		refused(fmt.Sprintf("cut at %d", n), pack[:n])
		damaged := bytes.Clone(pack)
		damaged[n] ^= 0x20
		refused(fmt.Sprintf("damaged at %d", n), damaged)
		if n >= 12 && n < len(pack)-sha1.Size { // damage that the pack's checksum does not show
			if _, _, err := indexed(t, bytes.NewReader(sealed(damaged[:len(pack)-sha1.Size])), indexCache); err == nil {
				x, _, _ := indexed(t, bytes.NewReader(sealed(damaged[:len(pack)-sha1.Size])), indexCache)
				sameAsLibrary(t, sealed(damaged[:len(pack)-sha1.Size]), x.entries)
			}
		}
	}
	refused("a type that does not exist", sealed([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x50")))
	refused("two billion objects", sealed([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff")))
	thin := packOn(t, plumbing.NewHash("1111111111111111111111111111111111111111"))
	refused("thin", thin)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no time left")
	cancel(cause)
	whole, _ := packOf(t, repo, false, 10)
	if err := writePackFiles(ctx, dir, bytes.NewReader(whole)); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

// sealed puts the checksum behind a pack.
func sealed(body []byte) []byte {
	sum := sha1.Sum(body)
	return append(bytes.Clone(body), sum[:]...)
}

// packOn is a pack of one delta.
func packOn(t testing.TB, base plumbing.Hash) []byte {
	t.Helper()
	var pack bytes.Buffer
	e, err := newPackEncoder(&pack, 1)
	if err != nil {
		t.Fatal(err)
	}
	delta := []byte{3, 3, 0x90, 3}
	pack.Write(append(packEntryHead(plumbing.REFDeltaObject, len(delta)), base[:]...))
	e.compressor.Reset(&pack)
	if _, err := e.compressor.Write(delta); err != nil {
		t.Fatal(err)
	}
	e.compressor.Close()
	return sealed(pack.Bytes())
}

// sameAsLibrary compares with go-git's indexer, which lists an object once only.
func sameAsLibrary(t *testing.T, pack []byte, entries []packEntry) {
	t.Helper()
	theirs := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(pack)), theirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(); err != nil {
		t.Fatalf("the library refuses it: %v", err)
	}
	index, err := theirs.Index()
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[plumbing.Hash]bool{}
	for _, e := range entries {
		hashes[e.hash] = true
		if found, err := index.Contains(e.hash); err != nil || !found {
			t.Errorf("%s is at %d for us only", e.hash, e.offset)
		}
	}
	if n, err := index.Count(); err != nil || int(n) != len(hashes) {
		t.Errorf("%d objects, the library finds %d", len(hashes), n)
	}
}

// Offsets that do not fit into 31 bits.
func TestIndexOfLargePack(t *testing.T) {
	t.Parallel()
	entries := []packEntry{{offset: 12, hash: plumbing.Hash{2}, crc: 7}, {offset: 1<<31 - 1, hash: plumbing.Hash{1}},
		{offset: 1 << 31, hash: plumbing.Hash{3}}, {offset: 1 << 40, hash: plumbing.Hash{0xff}}}
	var data bytes.Buffer
	if err := writeIndex(&data, entries, plumbing.Hash{9}); err != nil {
		t.Fatal(err)
	}
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(&data).Decode(index); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		offset, err := index.FindOffset(e.hash)
		crc, crcErr := index.FindCRC32(e.hash)
		if err != nil || offset != e.offset || crcErr != nil || crc != e.crc {
			t.Errorf("%s: at %d, %v; %d, %v", e.hash, offset, err, crc, crcErr)
		}
	}
}

// A law rather than "does not crash": what the indexer takes, the library takes, too,
// and both find the same objects.
func FuzzPackIndexer(f *testing.F) {
	repo := gittest.NewRepo(f)
	repo.Commit("main", "x", map[string]string{"a": strings.Repeat("line of text\n", 100), "b": strings.Repeat("line of text\n", 99) + "x"})
	for _, offsets := range []bool{true, false} {
		pack, _ := packOf(f, repo, offsets, 10)
		f.Add(pack[12:len(pack)-sha1.Size], uint8(pack[11]))
	}
	f.Fuzz(func(t *testing.T, body []byte, objects uint8) {
		head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(objects))
		pack := sealed(append(head, body...))
		x, index, err := indexed(t, bytes.NewReader(pack), indexCache)
		_, again, errAgain := indexed(t, bytes.NewReader(pack), 0)
		if (err == nil) != (errAgain == nil) || !bytes.Equal(index, again) {
			t.Fatalf("the cache makes a difference: %v, %v", err, errAgain)
		}
		if err == nil {
			sameAsLibrary(t, pack, x.entries)
		}
	})
}

// An answer of many objects goes through the indexer, into a mirror that is in use.
func TestLargeFetchIntoUsedMirror(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "first", map[string]string{"a": "1"})
	m, err := Open(Config{URL: repo.URL(), Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for n := range 100 {
		files[fmt.Sprintf("d%d/f%d", n%50, n)] = fmt.Sprintf("file %d\n", n)
	}
	m.store.large = uint32(len(files))
	repo.Commit("main", "many", files)
	store := m.store
	after, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.store != store {
		t.Error("a new mirror was made")
	}
	for _, read := range []struct {
		from       *Snapshot
		path, want string
	}{{before, "a", "1"}, {after, "a", "1"}, {after, "d7/f57", "file 57\n"}} {
		if data, err := read.from.ReadFile(read.path); err != nil || string(data) != read.want {
			t.Errorf("%s: %q, %v", read.path, data, err)
		}
	}
	mustWriteOn(t, m)
	gittest.Run(t, m.store.dir, "fsck", "--strict")
}

func mustWriteOn(t *testing.T, m *Mirror) {
	t.Helper()
	commit := Commit{Message: "ours", Author: Signature{Name: "r", Email: "r@example.com"}, Write: map[string][]byte{"d7/new": []byte("new")}}
	if _, err := m.Update(t.Context(), func(context.Context, *Snapshot) ([]Commit, error) { return []Commit{commit}, nil }); err != nil {
		t.Fatal(err)
	}
}
