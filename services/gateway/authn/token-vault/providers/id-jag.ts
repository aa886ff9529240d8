import * as oidc from 'openid-client'
import type { ProviderConfig } from '../config.ts'
import type { LoginTokens } from '../store/account.ts'
import { isRefusal, OAuthClient, type Outside, type Refusal, refusal } from './client.ts'

export interface LoginRenewal {
  /** Returns the login while its ID token is valid, otherwise renews it if there is a refresh token. */
  current(login: LoginTokens): Promise<LoginTokens | Refusal>
  /** Client of the login: default for members that `idJag` leaves out. */
  readonly client: { readonly tokenURL: string; readonly clientID: string; readonly clientSecretFile: string }
  readonly issuer: string
  readonly caFile: string
}

/** RFC 8693 and the draft "Identity Assertion JWT Authorization Grant". */
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'

/** Requests identity assertions for another authorization server from the identity provider (docs/spec/gateway.md, `providers[].idJag`). */
export class IdentityAssertions {
  readonly #config: ProviderConfig
  readonly #login: LoginRenewal
  readonly #idp: OAuthClient

  constructor(config: ProviderConfig, given: Outside & { readonly field: string; readonly login: LoginRenewal }) {
    const { idpTokenURL, idpClientID, idpClientSecretFile } = config.idJag
    const { login } = given
    const tokenURL = idpTokenURL || login.client.tokenURL
    this.#config = config
    this.#login = login
    this.#idp = new OAuthClient(
      {
        field: `${given.field}.idJag`,
        issuer: login.issuer,
        authorizationURL: null,
        tokenURL,
        revocationURL: '',
        jwksURL: null,
        clientID: idpClientID || login.client.clientID,
        clientSecretFile: idpClientSecretFile || (idpClientID === '' ? login.client.clientSecretFile : ''),
        clientAuth: config.clientAuth,
        caFile: login.caFile,
        saysIssuer: false,
      },
      given,
    )
  }

  /** Returns the assertion and the login for the next one. */
  async assertionFor(
    login: LoginTokens,
  ): Promise<{ readonly assertion: string; readonly login: LoginTokens } | Refusal> {
    const current = await this.#login.current(login)
    if (isRefusal(current)) return current
    const { idJag, issuer, resource, scopes } = this.#config
    const scope = idJag.scopes.length > 0 ? idJag.scopes : scopes
    const target = idJag.resource || resource
    const answer = await this.#idp.request((client) =>
      oidc.genericGrantRequest(client, TOKEN_EXCHANGE, {
        requested_token_type: ID_JAG,
        subject_token: current.idToken,
        subject_token_type: ID_TOKEN,
        audience: idJag.audience || issuer,
        ...(target !== '' && { resource: target }),
        ...(scope.length > 0 && { scope: scope.join(' ') }),
      }),
    )
    if (isRefusal(answer)) return answer
    if (answer.issued_token_type !== ID_JAG) return refusal(null, 'the identity provider gave no identity assertion')
    return { assertion: answer.access_token, login: current }
  }
}
