// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import "regexp"

// redacted stands where something was taken out.
const redacted = "REDACTED"

// secretText is what credentials look like in any text, and what takes their place. Rather too much is taken out than too little.
var secretText = []struct {
	looksLike *regexp.Regexp
	becomes   string
}{
	// Keys and certificates, one that is cut off included, with real line breaks or written ones.
	{regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----[A-Za-z0-9+/=\s\\:,.-]*?(-----END [A-Z0-9 ]+-----|$|["'` + "`" + `])`), redacted},
	// The same in base64, as in Secrets and kubeconfigs.
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*(\s+[A-Za-z0-9+/=_-]{40,})*`), redacted},
	// JSON web tokens.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)?`), redacted},
	{regexp.MustCompile(`\b((?i:bearer)|Basic)\s+[A-Za-z0-9._~+/=-]{6,}`), "${1} " + redacted},
	// Fields of kubeconfigs, of Docker configurations, and whatever is called a password, a token or a key.
	{
		regexp.MustCompile(`(?i)((?:-data|passw(?:or)?d|passphrase|secret[-_ ]?key|access[-_ ]?key|api[-_ ]?key|private[-_ ]?key|client[-_ ]?secret|token|"auth\\?)\\?["']?\s*[:=]\s*)` +
			`(\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s"'\\,;&}\])]+)`),
		"${1}" + redacted,
	},
	// Credentials in URLs.
	{regexp.MustCompile(`://[^/\s"'@]+@`), "://" + redacted + "@"},
	// Tokens of well-known services, and those that nodes join a cluster with.
	{regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16})\b`), redacted},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), redacted},
}

// redact takes out of a text what looks like a credential.
func redact(text string) string {
	for _, s := range secretText {
		text = s.looksLike.ReplaceAllString(text, s.becomes)
	}
	return text
}
