// SPDX-License-Identifier: Apache-2.0

// Package externalservice is the input provider of type ExternalService: input
// sets that an orchestrator answers a GET request with.
//
// The answer is a JSON object with the array "inputs", one object for each input
// set. Its order is kept. Fields are free; "id", if there is one, is a text or a
// number and names the input set for life. An input set without it gets one when
// sets are combined.
//
//	{"inputs": [{"id": "t1", "tenant": "tenant1", "features": ["a", "b"]}]}
//
// The empty array means that there is nothing now, and is the only thing that
// does: no "inputs", null, something else in its place, text after the end or a
// field that is there twice are errors, like any status but 200.
//
// The secret has either "token" (sent as bearer token) or "username" and
// "password" (basic authentication). Of the filters only limit applies.
package externalservice
