/** Members of gateway.json that the checks read, with defaults. */
export interface Posture {
  readonly listen: string
  readonly adminListen: string
  readonly corsOrigins: readonly string[]
  readonly shutdownDelaySeconds: number
  readonly tls: { readonly certFile: string; readonly svidMode: string }
  readonly identity: KeyAddresses & { readonly leewaySeconds: number; readonly trustedIssuers: readonly KeyAddresses[] }
  readonly sovereigntyPolicyFile: string
  readonly endpointJurisdictions: Readonly<Record<string, string>>
  readonly tokenExchangeURL: string
  readonly dpop: { readonly require: boolean }
  readonly policyReloadSeconds: number
  readonly modelPolicy: string
  readonly policy: { readonly rego: { readonly url: string; readonly enforcement: string } }
  readonly models: Readonly<Record<string, { readonly upstream: string }>>
  readonly modelsFile: string
  readonly upstreams: Readonly<Record<string, string>>
  readonly auditFailurePolicy: string
  readonly auditCheckpointKey: string
  readonly transparencyLog: {
    readonly enabled: boolean
    readonly publicKeyFiles: readonly string[]
  }
  readonly otel: { readonly enabled: boolean; readonly endpoint: string }
  readonly auditSinks: readonly { readonly url: string; readonly address: string }[]
  readonly approvalStorePath: string
  readonly pinStorePath: string
  readonly taintStorePath: string
  readonly guards: readonly { readonly url: string; readonly failOpen: boolean }[]
  readonly approvalPreview: { readonly mode: string }
  readonly dlpProfiles: Readonly<Record<string, { readonly onOversize?: string; readonly streamCarryBytes: number }>>
  readonly dlp: { readonly defaultProfile: string }
  readonly revocationsFile: string
  readonly sessionBudgetUSD: number
  readonly budgetsFile: string
  readonly pricingFile: string
  readonly adminAuth: { readonly devTokenApprovers: boolean; readonly mode: string; readonly oidc: KeyAddresses }
  readonly notifyOutboxPath: string
  readonly notifiers: readonly {
    readonly type: string
    readonly url: string
    readonly homeserver: string
    readonly hmacSecretFile: string
    readonly callbackOIDC: KeyAddresses & { readonly discoveryURL: string }
  }[]
  readonly ciba: KeyAddresses & {
    readonly enabled: boolean
    readonly backchannelAuthenticationEndpoint: string
    readonly tokenEndpoint: string
  }
  readonly tokenVault: VaultPosture
  readonly configBundle: {
    readonly enabled: boolean
    readonly pull: { readonly url: string; readonly tokenFile: string }
  }
  readonly egress: { readonly enabled: boolean }
  readonly exec: { readonly enabled: boolean; readonly keyFile: string }
  readonly offline: {
    readonly enabled: boolean
    readonly fullPolicy: string
    readonly maxRevocationStalenessSeconds: number
    readonly forward: { readonly url: string }
  }
  readonly a2a: {
    readonly routesFile: string
    readonly cardSigningKey: string
    readonly pushNotificationHosts: readonly string[]
  }
  readonly web: {
    readonly enabled: boolean
    readonly defaultAllow: boolean
    readonly taintLabels: readonly string[]
    readonly search: { readonly url: string }
  }
  readonly k8sOps: {
    readonly enabled: boolean
    readonly apiServer: string
    readonly serviceAccount: string
    readonly taintLabels: readonly string[]
    readonly writes: { readonly mode: string | number; readonly approval: string | number }
  }
  readonly infra: {
    readonly enabled: boolean
    readonly requireApprovalAtTier: number
    readonly maxTier: number
  }
  readonly stateBackend: { readonly type: 'file' | 'postgres' }
  readonly posture: { readonly replicas: number; readonly accept: readonly string[] }
}

/** Members of `tokenVault`; it is not a risk while off. */
interface VaultPosture {
  readonly enabled: boolean
  readonly publicBaseURL: string
  readonly allowUnverifiedPrincipal: boolean
  readonly login: VaultAddresses & KeyAddresses
  readonly providers: readonly (VaultAddresses & {
    readonly allowAnyServer: boolean
    readonly disablePKCE: boolean
    readonly revocationURL: string
    readonly idJag: { readonly idpTokenURL: string }
  })[]
}

/** Where keys come from: `jwksURL`, else discovery at the issuer. */
export interface KeyAddresses {
  readonly issuer: string
  readonly jwksURL: string
}

export interface VaultAddresses {
  readonly issuer: string
  readonly authorizationURL: string
  readonly tokenURL: string
}
