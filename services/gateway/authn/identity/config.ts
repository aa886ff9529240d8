import { defineBlock, isUnset, LONGEST_SECONDS, type RuleOf } from '@plat/config'
import { isObject } from '@plat/core'
import Type, { type Static } from 'typebox'

/** A name that is valid in a SPIFFE ID and a Kubernetes resource. */
const DNS_LABEL = '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'

/** RFC 6749, appendix A.4: characters of a scope. */
const SCOPE = '^[!#-[\\]-~]+$'

const trustedIssuer = Type.Object({
  issuer: Type.String({ minLength: 1, format: 'http-url', description: 'Exact `iss`.' }),
  namespace: Type.String({ pattern: DNS_LABEL, description: 'Namespace of its callers.' }),
  jwksURL: Type.String({ default: '', format: 'http-url', description: 'Its key document; default discovery.' }),
  caFile: Type.String({
    default: '',
    file: 'error',
    description: 'PEM CA bundle trusted in addition to the system’s.',
  }),
  algorithms: Type.Array(Type.Enum(['RS256', 'ES256', 'EdDSA']), {
    default: ['RS256', 'ES256', 'EdDSA'],
    minItems: 1,
    description: 'Signature algorithms of its tokens.',
  }),
  jwksRefreshSeconds: Type.Integer({
    default: 300,
    minimum: 1,
    maximum: LONGEST_SECONDS,
    description: 'Interval between fetches of its keys.',
  }),
  leewaySeconds: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Skew on `exp` and `nbf`; default `identity.leewaySeconds`.' }),
  ),
  authorizationServer: Type.String({
    default: '',
    format: 'http-url',
    description: 'Where clients get tokens; default the issuer.',
  }),
  agent: Type.String({ default: 'external', pattern: DNS_LABEL, description: 'Agent name of its callers.' }),
  agentClaim: Type.String({
    default: '',
    description: 'Claim that gives the agent name instead, made a DNS label; a token without it is refused.',
  }),
  usernameClaim: Type.String({
    default: '',
    description: 'Claim with the user; default `preferred_username`, then `email`, then `sub`.',
  }),
  groupsClaim: Type.String({
    default: 'groups',
    minLength: 1,
    description: 'Claim with the groups; may be a dotted path.',
  }),
  scopePrefix: Type.String({ default: '', description: 'Stripped from scopes; scopes without it are ignored.' }),
  servers: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'Globs of the servers that accept its tokens; default all.',
  }),
  stepUpScopes: Type.Record(Type.String({ pattern: '^[^/]+/.+$' }), Type.Array(Type.String({ pattern: SCOPE })), {
    default: {},
    description: '`<server>/<tool glob>` to further scopes, without prefix, that `tools/call` needs.',
  }),
})

export type TrustedIssuerConfig = Readonly<Static<typeof trustedIssuer>>

const schema = Type.Object({
  publicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
    default: [],
    description: 'PEM Ed25519 keys (rotation supported).',
  }),
  jwksURL: Type.String({ default: '', format: 'http-url', description: 'Broker JWKS URL.' }),
  jwksRefreshSeconds: Type.Integer({
    default: 300,
    minimum: 1,
    maximum: LONGEST_SECONDS,
    description: 'Interval between fetches of the JWKS.',
  }),
  issuer: Type.String({ default: '', description: 'Expected `iss`.' }),
  audience: Type.String({ default: 'plat-gateway', minLength: 1, description: 'Expected `aud`.' }),
  leewaySeconds: Type.Integer({ default: 30, minimum: 0, description: 'Skew on `exp` and `nbf`.' }),
  acceptMLDSA: Type.Boolean({
    default: false,
    description: 'Accept ML-DSA (FIPS 204) tokens; off refuses them.',
  }),
  mldsaPublicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
    default: [],
    description: 'ML-DSA public keys in PEM; needs `acceptMLDSA`.',
  }),
  resourceBaseURL: Type.String({
    default: '',
    format: 'http-url',
    description:
      'Public gateway base URL; the RFC 8707 resource of an MCP server is `<resourceBaseURL>/mcp/<name>`; required with `trustedIssuers`.',
  }),
  trustedIssuers: Type.Array(trustedIssuer, {
    default: [],
    description: 'Customer identity providers whose access tokens external MCP clients may present.',
  }),
})

/** docs/spec/gateway.md, core rule 2. */
const someKey: RuleOf<typeof schema> = ({ publicKeyFiles, jwksURL }) =>
  !isUnset(jwksURL) || !isUnset(publicKeyFiles)
    ? []
    : [{ path: 'identity', message: 'publicKeyFiles or jwksURL is required', severity: 'error' }]

/** Warns that the tokens of these keys are refused. */
const mldsaFilesAreRead: RuleOf<typeof schema> = ({ mldsaPublicKeyFiles, acceptMLDSA }) =>
  acceptMLDSA === true || isUnset(mldsaPublicKeyFiles)
    ? []
    : [
        {
          path: 'identity.mldsaPublicKeyFiles',
          message: 'not read while identity.acceptMLDSA is off',
          severity: 'warning',
        },
      ]

/** Without a resource no access token can be issued for this gateway. */
const issuersNeedResource: RuleOf<typeof schema> = ({ trustedIssuers, resourceBaseURL }) =>
  !isUnset(resourceBaseURL) || isUnset(trustedIssuers)
    ? []
    : [{ path: 'identity.resourceBaseURL', message: 'is required with identity.trustedIssuers', severity: 'error' }]

/** `iss` selects the rules for a token, so issuers must be distinct. */
const issuersDiffer: RuleOf<typeof schema> = ({ trustedIssuers = [], issuer: own }) => {
  const names = trustedIssuers.map((one) => one?.issuer ?? '')
  return names.flatMap((name, index) => {
    const other = name !== '' && name === own ? 'identity.issuer' : `identity.trustedIssuers[${names.indexOf(name)}]`
    if (name === '' || (name !== own && names.indexOf(name) === index)) return []
    const path = `identity.trustedIssuers[${index}].issuer`
    return [{ path, message: `is that of ${other} already`, severity: 'error' } as const]
  })
}

/** Identity (docs/spec/gateway.md): how session tokens are verified. */
export const identityBlock = defineBlock({
  path: 'identity',
  feature: 'identity',
  schema,
  rules: [someKey, mldsaFilesAreRead, issuersNeedResource, issuersDiffer],
})

/** Maximum lifetime of a proof, in seconds (docs/spec/gateway.md, "Limits"). */
const MAX_PROOF_SECONDS = 600

const dpopSchema = Type.Object({
  require: Type.Boolean({
    default: false,
    description: 'Refuse tokens not bound with DPoP (except at the egress proxy).',
  }),
  maxAgeSeconds: Type.Integer({ default: 60, minimum: 0, maximum: MAX_PROOF_SECONDS, description: 'Proof age.' }),
  publicURL: Type.String({
    default: '',
    format: 'http-url',
    description: 'Gateway URL as agents address it; default `identity.resourceBaseURL`.',
  }),
})

/** A proof names the URL that the agent called. A Host header would be controlled by the caller. */
const urlIsKnown: RuleOf<typeof dpopSchema> = ({ require, publicURL }, { identity }) => {
  const base = isObject(identity) ? identity.resourceBaseURL : ''
  return require !== true || !isUnset(publicURL) || !isUnset(base)
    ? []
    : [
        {
          path: 'dpop.publicURL',
          message: 'this or identity.resourceBaseURL is required with dpop.require',
          severity: 'error',
        },
      ]
}

/** Proof of possession at the gateway (docs/spec/gateway.md; RFC 9449). */
export const dpopBlock = defineBlock({
  path: 'dpop',
  feature: 'identity',
  schema: dpopSchema,
  rules: [urlIsKnown],
})
