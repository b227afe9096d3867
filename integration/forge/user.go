// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"

	"code.gitea.io/sdk/gitea"
)

// A User is somebody with an account.
type User struct {
	Name  string
	forge *Forge
	*gitea.Client
}

// NewUser makes an account, and a client of the API that acts as that user.
func (f *Forge) NewUser(ctx context.Context, name string) (*User, error) {
	later := false
	if _, _, err := f.admin.AdminCreateUser(gitea.CreateUserOption{
		Username: name, Email: name + "@example.com", Password: password, MustChangePassword: &later,
	}); err != nil {
		return nil, err
	}
	c, err := gitea.NewClient(f.URL, gitea.SetContext(ctx), gitea.SetBasicAuth(name, password), gitea.SetGiteaVersion(""))
	if err != nil {
		return nil, err
	}
	return &User{Name: name, forge: f, Client: c}, nil
}

// Token makes an access token of the user that may do no more than the scope says,
// for example "read:repository". The SDK names those of older releases alone.
func (u *User) Token(name, scope string) (string, error) {
	t, _, err := u.CreateAccessToken(gitea.CreateAccessTokenOption{Name: name, Scopes: []gitea.AccessTokenScope{gitea.AccessTokenScope(scope)}})
	if err != nil {
		return "", err
	}
	return t.Token, nil
}
