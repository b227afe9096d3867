// SPDX-License-Identifier: Apache-2.0

package api

import "strings"

// nearest is the candidate that word is probably a slip of, or empty.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		distance := editDistance(strings.ToLower(word), strings.ToLower(c))
		if distance < bestDistance && distance < len(c) {
			best, bestDistance = c, distance
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b, over bytes: field names are ASCII.
func editDistance(a, b string) int {
	const longest = 64 // no field is longer; strangers' keys may be
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
