// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tantilium/cloud-runner/internal/signin"
)

func loginCommand() *cobra.Command {
	var provider signin.Provider
	var login signin.Login
	var authority, passwordFile, session string
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Sign in, and keep the session in a file",
		Long: "Sign in with a name and a password, which is asked for, and keep the session in a file that you alone can read. \"credential\"\n" +
			"makes tokens of it until it ends.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if authority != "" {
				text, err := os.ReadFile(authority)
				if err != nil {
					return err
				}
				provider.CertificateAuthority = string(text)
			}
			var err error
			if login.Password, err = readPassword(cmd, passwordFile, "password of "+login.User); err != nil {
				return err
			}
			begun, err := provider.SignIn(cmd.Context(), login)
			if err != nil {
				return err
			}
			return begun.Save(session)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&provider.Issuer, "issuer", "", "URL of the provider")
	flags.StringVar(&authority, "certificate-authority", "", "file with the certificates that are trusted for it; default: those of the machine")
	flags.StringVar(&provider.ConnectTo, "connect-to", "", "HOST:PORT to connect to in place of the issuer's")
	flags.StringVar(&provider.TLSServerName, "tls-server-name", "", "name that the certificate must be for, in place of the issuer's host")
	flags.StringVar(&login.User, "user", "", "name to sign in with")
	flags.StringVar(&login.Tenant, "tenant", "", "tenant to sign in to, for members of several")
	flags.StringVar(&passwordFile, "password-file", "", "file with the password, which is asked for otherwise")
	addSessionFlag(cmd, &session)
	_ = cmd.MarkFlagRequired("issuer")
	_ = cmd.MarkFlagRequired("user")
	return cmd
}

func credentialCommand() *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "credential",
		Short: "Print a token for kubectl, as its credential plugin",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := signin.Load(session)
			if err != nil {
				return err
			}
			credential, err := loaded.Credential(cmd.Context())
			if err != nil {
				return fmt.Errorf("%s at %s: %w", loaded.User, loaded.Issuer, err)
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(credential)
		},
	}
	addSessionFlag(cmd, &session)
	return cmd
}

func addSessionFlag(cmd *cobra.Command, session *string) {
	cmd.Flags().StringVar(session, "session", defaultSession(), "file of the session")
	if *session == "" {
		_ = cmd.MarkFlagRequired("session")
	}
}

func defaultSession() string {
	folder, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "kubeopera", "session.json")
}
