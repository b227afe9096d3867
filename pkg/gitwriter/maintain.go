// SPDX-License-Identifier: Apache-2.0

package gitwriter

import "context"

// maintain keeps the mirror small.
func (m *Mirror) maintain(ctx context.Context) error { return nil }
