import type { SessionClaims } from '@plat/tokens'

/** `params` of an audience. */
export type ProviderParams = Readonly<Record<string, unknown>>

/** Request for a cloud credential. */
export interface CredentialRequest {
  /** The verified subject token. */
  readonly subject: SessionClaims
  /** Name of the audience in `-exchange-config`, and its `params`. */
  readonly audienceName: string
  readonly audience: { readonly params: ProviderParams }
  /** Granted scopes, never empty. */
  readonly scopes: readonly string[]
  /** The `jti` of the assertion: the record of issuance names it. */
  readonly jti: string
  /** Life of the assertion, in seconds; the credential's own life is the provider's. */
  readonly lifetimeSeconds: number
}

/** A credential of a cloud. */
export interface Credential {
  readonly kind: 'credential'
  /** Returned to the caller as `access_token`. */
  readonly accessToken: string
  /** The provider's true lifetime, in seconds. */
  readonly expiresInSeconds: number
}

/** The cloud refused: 502 `server_error`. The reason is for the broker's log; the provider's response is not passed on. */
export interface ProviderFailure {
  readonly kind: 'failed'
  readonly reason: string
}

/** Turns a session into a credential of one cloud (docs/spec/broker-api.md, exchange rule 5). One file implements one provider. */
export interface CredentialProvider {
  /** The name in `provider`: `aws-sts`, `gcp-sts`, `azure-entra`. */
  readonly name: string
  /** Returns the problems of an audience's `params`, one line each beginning with the key: `roleArn: is missing`. */
  problems(params: ProviderParams): readonly string[]
  /** Returns the shortest life of a credential with these `params`, in seconds; 0 when any can be requested. */
  leastSeconds(params: ProviderParams): number
  issue(request: CredentialRequest): Promise<Credential | ProviderFailure>
}
