// SPDX-License-Identifier: Apache-2.0

// Package listing reads lists that a server hands out in pages, whole or not at all.
//
// A list can change while it is read: what closes on page one moves the first item
// of page two to page one, where nobody looks any more, and what opens moves one to
// a page where it is read twice. Both look like a good answer. So a [List] that had
// more than one page is asked for again, page by page, and read anew until two
// readings agree; a server that knows validators (ETag, RFC 9110) answers that
// without a body, and most forges without counting it. A list whose pages all say
// what they said the last time is taken for unchanged, and not asked for again.
//
// The end of a list is where the server names no next page, never guessed from the
// size of a page. An empty page with a successor, a page that leads back to an
// earlier one and a list without end are errors. Errors are of type provider.Error
// and name the page.
//
// A server that counts its items or pages is held to it: a list that ends before has
// moved, and is read again. It is never ended by such a number, which may be old.
//
// A list is shared by all providers that would ask for the same (see
// provider.Share), and is read once a pass. Cost: one request a page, and as many
// again less one when there is more than one page and something changed.
package listing
