// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

// Session is what a file keeps of a sign-in. Whoever has it can act as its user until it ends.
type Session struct {
	Provider `json:",inline"`

	User         string `json:"user"`
	RefreshToken string `json:"refreshToken"`
}

// Credential asks for a token, and gives it as kubectl expects it of a credential plugin.
func (s Session) Credential(ctx context.Context) (*clientauthenticationv1.ExecCredential, error) {
	party, err := s.relyingParty(ctx)
	if err != nil {
		return nil, err
	}
	tokens, err := rp.RefreshTokens[*oidc.IDTokenClaims](ctx, party, s.RefreshToken, "", "")
	if err != nil {
		return nil, said(err)
	}
	return &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthenticationv1.ExecCredentialStatus{
			Token:               tokens.IDToken,
			ExpirationTimestamp: &metav1.Time{Time: tokens.IDTokenClaims.GetExpiration()},
		},
	}, nil
}

// Load reads a session.
func Load(file string) (Session, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Session{}, fmt.Errorf("no session, sign in first: %w", err)
	}
	var loaded Session
	if json.Unmarshal(text, &loaded) != nil || loaded.RefreshToken == "" {
		return Session{}, fmt.Errorf("%s is no session: sign in again", file)
	}
	return loaded, nil
}

// Save writes the session to a file that its owner alone can read. Who reads the file at the same time sees either session whole.
func (s Session) Save(file string) error {
	//nolint:gosec // The file is there to keep the refresh token.
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	// A new file of its own can be read by nobody else.
	written, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(written.Name()) }()
	_, err = written.Write(append(text, '\n'))
	if closed := written.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(written.Name(), file)
}
