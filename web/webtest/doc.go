// Package webtest tests package web in a real browser: Chromium, or Chrome.
//
// The browser is the one that HEED_BROWSER names, or else the first of chromium, chromium-browser
// and google-chrome on the PATH. Debian has it:
//
//	apt-get install chromium
//
// Without a browser the tests are skipped. With HEED_BROWSER=require they fail. HEED_LONG=1 runs
// their long forms: those need npm, for axe-core.
//
// It also tests the API: kin-openapi and Redocly validate openapi.json, and a TypeScript client
// that is generated from it runs against a server. Without npm that test is skipped.
//
//	GOWORK=off go test . -run Screenshots -update   # makes the pictures of docs/
//	GOWORK=off go test . -run Pages -shots DIR      # leaves a picture of each page in DIR
package webtest
