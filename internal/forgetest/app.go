// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An App is a GitHub App that is installed at one account. As soon as a server
// has one, it refuses requests without a valid token.
type App struct {
	ID, InstallationID int64
	Owner              string
	PrivateKey         []byte // in PEM

	github *GitHub
	public *rsa.PublicKey
	valid  map[string]bool
	minted int
	life   time.Duration
}

// InstallApp makes an app and installs it.
func (g *GitHub) InstallApp(owner string) (*App, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lastID++
	app := &App{
		ID: 1000 + g.lastID, InstallationID: 2000 + g.lastID, Owner: owner,
		PrivateKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		github:     g, public: &key.PublicKey, valid: map[string]bool{}, life: time.Hour,
	}
	g.apps[strings.ToLower(owner)] = app
	return app, nil
}

// Minted counts the tokens that were made.
func (a *App) Minted() int {
	a.github.mu.Lock()
	defer a.github.mu.Unlock()
	return a.minted
}

// Revoke ends all tokens made so far, whatever their time of expiry says.
func (a *App) Revoke() {
	a.github.mu.Lock()
	defer a.github.mu.Unlock()
	clear(a.valid)
}

// TokenLife sets how long the tokens that are made from now on say they live.
func (a *App) TokenLife(life time.Duration) {
	a.github.mu.Lock()
	defer a.github.mu.Unlock()
	a.life = life
}

func (g *GitHub) installation(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	app := g.apps[strings.ToLower(r.PathValue("owner"))]
	if app == nil {
		Status(http.StatusNotFound, "Not Found")(w, r, nil)
		return
	}
	if err := app.verify(r); err != nil {
		Status(http.StatusUnauthorized, err.Error())(w, r, nil)
		return
	}
	JSON(fmt.Sprintf(`{"id":%d,"app_id":%d,"account":{"login":%q},"target_type":"Organization"}`,
		app.InstallationID, app.ID, app.Owner))(w, r, nil)
}

func (g *GitHub) mint(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, app := range g.apps {
		if strconv.FormatInt(app.InstallationID, 10) != r.PathValue("id") {
			continue
		}
		if err := app.verify(r); err != nil {
			Status(http.StatusUnauthorized, err.Error())(w, r, nil)
			return
		}
		app.minted++
		token := fmt.Sprintf("ghs_%d_%d", app.ID, app.minted)
		app.valid[token] = true
		Answer(http.StatusCreated, "application/json", fmt.Sprintf(
			`{"token":%q,"expires_at":%q,"permissions":{"pull_requests":"read"},"repository_selection":"all"}`,
			token, time.Now().Add(app.life).UTC().Format(time.RFC3339)))(w, r, nil)
		return
	}
	Status(http.StatusNotFound, "Not Found")(w, r, nil)
}

// verify checks the signed claim by which an app shows who it is.
func (a *App) verify(r *http.Request) error {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return fmt.Errorf("a JSON web token could not be decoded")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(a.public, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claim struct {
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
		Issuer   string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claim); err != nil {
		return err
	}
	now := time.Now().Unix()
	if claim.Issuer != strconv.FormatInt(a.ID, 10) || claim.IssuedAt > now || claim.Expires < now || claim.Expires > now+600 {
		return fmt.Errorf("'Issuer', 'Issued at' or 'Expiration time' claim is wrong")
	}
	return nil
}
