// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tantilium/cloud-runner/internal/users"
)

func userCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Add, remove and list those who sign in with a password",
		Long: "Add, remove and list those who sign in with a password. They are kept in Secret kubeopera-core/auth-service-users of the cluster of\n" +
			"KUBECONFIG. What they may do is another matter: a Tenant's members say it, or --super-admin.",
	}
	cmd.AddCommand(addUserCommand(), removeUserCommand(), listUsersCommand())
	return cmd
}

func addUserCommand() *cobra.Command {
	var passwordFile string
	var superAdmin bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user, or give one another password, which ends their sessions",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, passwordFile, "new password of "+args[0])
			if err != nil {
				return err
			}
			user, err := users.New(password, superAdmin)
			if err != nil {
				return err
			}
			return store.Put(cmd.Context(), args[0], user)
		},
	}
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "file with the password, which is asked for otherwise")
	cmd.Flags().BoolVar(&superAdmin, "super-admin", false, "make them an administrator of the platform, who is in no tenant")
	return cmd
}

func removeUserCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a user, which ends their sessions; their last token counts until it expires",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			return store.Remove(cmd.Context(), args[0])
		},
	}
}

func listUsersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List users, and who of them is an administrator",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := newStore()
			if err != nil {
				return err
			}
			all, err := store.List(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(all)) {
				kind := "customer"
				if all[name].SuperAdmin {
					kind = "super_admin"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-20s %s\n", name, kind)
			}
			return nil
		},
	}
}

func newStore() (users.Store, error) {
	c, err := newClient()
	return users.Store{Client: c}, err
}

// readPassword takes the first line of a file, or asks for it where there is a person.
func readPassword(cmd *cobra.Command, file, what string) (string, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return line, nil
	}
	terminal := int(os.Stdin.Fd())
	if !term.IsTerminal(terminal) {
		return "", errors.New("there is nobody to ask for a password: give --password-file")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: ", what)
	typed, err := term.ReadPassword(terminal)
	fmt.Fprintln(cmd.ErrOrStderr())
	return string(typed), err
}
