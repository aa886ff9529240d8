import { type ConfigBlock, key, requires, uniqueNames } from '@plat/config'
import Type from 'typebox'

const login = key.group(
  {
    issuer: key.url('Who says which user it is.'),
    clientID: key.text('Our client there.'),
    clientSecretFile: key.file('Its secret.'),
    scopes: key.texts('Scopes that are asked for.'),
    usernameClaim: key.text('Claim of the user name.'),
    caFile: key.file('Its authorities.'),
    authorizationURL: key.url('Default discovery.'),
    tokenURL: key.url('Default discovery.'),
    jwksURL: key.url('Default discovery.'),
  },
  'How users log in to connect an account.',
)

const idJag = key.group(
  {
    idpTokenURL: key.url('Token endpoint of the identity provider.'),
    idpClientID: key.text('Our client there.'),
    idpClientSecretFile: key.file('Its secret.'),
    audience: key.text('Audience of the assertion.'),
    resource: key.text('Resource of the assertion.'),
    scopes: key.texts('Its scopes.'),
  },
  'Grant `id-jag`.',
)

const provider = Type.Object({
  name: key.needed('Unique name.'),
  preset: key.choice(
    ['github', 'microsoft', 'google', 'salesforce', 'slack', 'generic'],
    'generic',
    'Known endpoints.',
  ),
  clientID: key.text('Our client there.'),
  clientSecretFile: key.file('Its secret.'),
  authorizationURL: key.url('Instead of the preset.'),
  tokenURL: key.url('Instead of the preset.'),
  revocationURL: key.url('Instead of the preset.'),
  scopes: key.texts('Scopes that are asked for.'),
  extraAuthParams: key.map(Type.String(), 'Further parameters of the authorization request.'),
  tenant: key.text('Of `microsoft`.'),
  domain: key.text('Of `salesforce`.'),
  clientAuth: key.choice(['post', 'basic'], 'post', 'How the client authenticates.'),
  disablePKCE: key.flag('For providers that refuse PKCE.'),
  issuer: key.text('Expected `iss` of the redirect.'),
  resource: key.text('RFC 8707 resource.'),
  caFile: key.file('Its authorities.'),
  grant: key.choice(['authorization_code', 'id-jag'], 'authorization_code', 'How tokens are got.'),
  idJag,
  allowedServers: key.texts('Servers that its tokens are for.'),
  allowedNamespaces: key.texts('Namespaces that may use it.'),
  allowAnyServer: key.flag('Every server.'),
})

/** `tokenVault` (document 3): users' OAuth tokens for per-user MCP servers. */
export const tokenVaultBlock = {
  path: 'tokenVault',
  feature: 'token-vault',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Keep OAuth tokens of users.'),
    keyURI: key.text('URI of an AES-256 key; required when enabled.'),
    retiredKeyURIs: key.texts('Keys that still open what they sealed.'),
    storePath: key.text('Default `<auditPath>.vault.jsonl`.'),
    publicBaseURL: key.url('Default `identity.resourceBaseURL`.'),
    login,
    providers: Type.Array(provider, { default: [], description: 'Where users connect their accounts.' }),
    flowTTLSeconds: key.seconds('Time for one consent.', 600),
    allowUnverifiedPrincipal: key.flag('Also for users whose binding to the session was not verified.'),
    externalUserIssuers: key.texts('Trusted issuers whose users may connect accounts.'),
    userRealm: key.text('Default login issuer, else admin OIDC issuer, else `plat`; a change orphans accounts.'),
    isolateExternalIssuers: key.flag('Users of each issuer apart.'),
    keepOnKillSwitch: key.flag('A kill switch leaves the tokens in place.'),
    mirror: key.group(
      { enabled: key.flag('Mirror to the cluster.'), namespace: key.text('Where.', 'plat-system') },
      'Copies in the cluster.',
    ),
  }),
  rules: [
    requires('tokenVault', ['keyURI'], ({ enabled }) => enabled === true, 'with tokenVault.enabled'),
    uniqueNames('tokenVault.providers'),
  ],
} satisfies ConfigBlock
