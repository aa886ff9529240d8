import { defineBlock, key, requires, uniqueNames } from '@plat/config'
import Type, { type Static } from 'typebox'
import { vaultRules } from './rules.ts'

const login = key.group(
  {
    issuer: key.url('Exact `iss` of the identity provider that users log in at; required when enabled.'),
    clientID: key.text('The gateway’s client there; required when enabled.'),
    clientSecretFile: key.file('Its secret, sent by HTTP Basic; none for a public client.'),
    scopes: key.texts('Scopes beside `openid`, such as `offline_access` for grant `id-jag`.'),
    usernameClaim: key.text(
      'Claim with the user as sessions name it; default `preferred_username`, then `email`, then `sub`.',
    ),
    caFile: key.file('PEM CA bundle trusted in addition to the system’s.'),
    authorizationURL: key.url('Default discovery.'),
    tokenURL: key.url('Default discovery.'),
    jwksURL: key.url('Default discovery.'),
  },
  'OpenID Connect login of users before they connect an account.',
)

const idJag = key.group(
  {
    idpTokenURL: key.url('Token endpoint of the identity provider; default that of `login`.'),
    idpClientID: key.text('The gateway’s client there; default that of `login`.'),
    idpClientSecretFile: key.file('Its secret; default that of `login` where the client is.'),
    audience: key.text('Issuer of the provider that the assertion is for; default `issuer`.'),
    resource: key.text('RFC 8707 resource of the assertion; default `resource`.'),
    scopes: key.texts('Scopes of the assertion; default `scopes`.'),
  },
  'Grant `id-jag`: the identity provider vouches for the user, without a consent page.',
)

const provider = Type.Object({
  name: key.needed(
    'Unique name, as MCPServers name it in `auth.provider`; not `callback`.',
    '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
  ),
  preset: Type.Enum(['github', 'microsoft', 'google', 'salesforce', 'slack', 'generic'], {
    default: 'generic',
    description: 'Built-in endpoints of a known provider.',
  }),
  clientID: key.text('The gateway’s client there; required.'),
  clientSecretFile: key.file('Its secret; read for each request.'),
  authorizationURL: key.url('Default of the preset; of `generic` discovery at `issuer`.'),
  tokenURL: key.url('Default of the preset; of `generic` discovery at `issuer`.'),
  revocationURL: key.url('RFC 7009; default of the preset, or what is discovered.'),
  scopes: key.texts('Requested scopes.'),
  extraAuthParams: key.map(Type.String(), 'Additional parameters of the authorization request.'),
  tenant: key.text('Of preset `microsoft`: its directory; default `common`.', '', '^[A-Za-z0-9.-]{0,253}$'),
  domain: key.text('Of preset `salesforce`: its host; default `login.salesforce.com`.', '', '^[A-Za-z0-9.-]{0,253}$'),
  clientAuth: Type.Enum(['post', 'basic'], { default: 'post', description: 'How the client sends its secret.' }),
  disablePKCE: key.flag('Omit PKCE, for providers that reject it.'),
  issuer: key.url('Expected `iss` of the redirect (RFC 9207): when set, a redirect without it is refused.'),
  resource: key.text('RFC 8707 resource that its tokens are for.'),
  caFile: key.file('PEM CA bundle trusted in addition to the system’s.'),
  grant: Type.Enum(['authorization_code', 'id-jag'], {
    default: 'authorization_code',
    description: 'Grant that obtains tokens.',
  }),
  idJag,
  allowedServers: key.texts(
    'MCPServers that may receive its tokens, `<namespace>/<name>` with globs; required unless `allowAnyServer`.',
  ),
  allowedNamespaces: key.texts('Namespaces whose agents may use its tokens; default all.'),
  allowAnyServer: key.flag('Every MCPServer that names this provider may receive its tokens.'),
})

export type ProviderConfig = Readonly<Static<typeof provider>>
export type LoginConfig = Readonly<Static<typeof login>>

/** `tokenVault` (docs/spec/gateway.md): users' OAuth tokens for per-user MCP servers. */
export const tokenVaultBlock = defineBlock({
  path: 'tokenVault',
  feature: 'token-vault',
  schema: Type.Object({
    enabled: key.flag('Store OAuth tokens of users for MCPServers with `auth.perUser`.'),
    keyURI: key.text(
      'URI of an AES-256 key (32 bytes in base64 or hex) that tokens are sealed with; required when enabled.',
    ),
    retiredKeyURIs: key.texts('Earlier keys that still decrypt; tokens are re-encrypted on use.'),
    storePath: key.text('Journal of accounts; default `<auditPath>.vault.jsonl`.'),
    publicBaseURL: key.url('Gateway URL as browsers address it; default `identity.resourceBaseURL`.'),
    login,
    providers: Type.Array(provider, { default: [], description: 'Providers where users connect their accounts.' }),
    flowTTLSeconds: key.seconds('Time limit of one consent flow.', 600),
    allowUnverifiedPrincipal: key.flag('Also serve sessions whose user was not verified.'),
    externalUserIssuers: key.texts('Of `identity.trustedIssuers` those whose users may use accounts; default none.'),
    userRealm: key.text('Realm of the user names; default `login.issuer`. A change orphans accounts.'),
    isolateExternalIssuers: key.flag('The realm of an external caller is its issuer.'),
    keepOnKillSwitch: key.flag('A revocation of a user does not delete the tokens.'),
    mirror: key.group(
      {
        enabled: key.flag('Mirror accounts to ConnectedAccount objects.'),
        namespace: key.text('Where.', 'plat-system', '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
      },
      'Mirror objects in the cluster, without tokens.',
    ),
  }),
  rules: [
    requires('tokenVault', ['keyURI', 'providers'], isEnabled, 'with tokenVault.enabled'),
    uniqueNames('tokenVault.providers'),
    ...vaultRules,
  ],
})

export type TokenVaultConfig = Readonly<Static<typeof tokenVaultBlock.schema>>

function isEnabled({ enabled }: Record<string, unknown>): boolean {
  return enabled === true
}
