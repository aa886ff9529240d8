import { type ConfigBlock, LONGEST_SECONDS, type Rule } from '@plat/config'
import Type from 'typebox'

/** Document 3, core rule 2. */
const someKey: Rule = ({ publicKeyFiles, jwksURL }) =>
  jwksURL !== '' || isFilled(publicKeyFiles)
    ? []
    : [{ path: 'identity', message: 'publicKeyFiles or jwksURL is required', severity: 'error' }]

/** The tokens of these keys are refused: whoever lists them should know. */
const mldsaFilesAreRead: Rule = ({ mldsaPublicKeyFiles, acceptMLDSA }) =>
  acceptMLDSA === true || !isFilled(mldsaPublicKeyFiles)
    ? []
    : [
        {
          path: 'identity.mldsaPublicKeyFiles',
          message: 'not read while identity.acceptMLDSA is off',
          severity: 'warning',
        },
      ]

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0
}

/** Identity (document 3): how session tokens are verified. */
export const identityBlock = {
  path: 'identity',
  feature: 'identity',
  built: true,
  schema: Type.Object({
    publicKeyFiles: Type.Array(Type.String({ minLength: 1, file: 'error' }), {
      default: [],
      description: 'PEM Ed25519 keys (rotation supported).',
    }),
    jwksURL: Type.String({ default: '', format: 'http-url', description: 'Broker JWKS URL.' }),
    jwksRefreshSeconds: Type.Integer({
      default: 300,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'How often the JWKS is fetched again.',
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
    trustedIssuers: Type.Array(Type.Unknown(), {
      default: [],
      built: false,
      description: 'Customer identity providers whose access tokens external MCP clients may present.',
    }),
  }),
  rules: [someKey, mldsaFilesAreRead],
} satisfies ConfigBlock
