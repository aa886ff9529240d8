import { type ConfigBlock, key, type Rule } from '@plat/config'
import { closest } from '@plat/core'
import Type from 'typebox'
import { ALL_ROLES } from './roles.ts'

const groups = () => Type.Array(Type.String({ minLength: 1 }))

/** A role that nobody knows would silently grant nothing. */
const rolesAreKnown: Rule = ({ roles }) =>
  Object.keys(typeof roles === 'object' && roles !== null ? roles : {}).flatMap((role) => {
    if (ALL_ROLES.some((known) => known === role)) return []
    const meant = closest(role, ALL_ROLES)
    const message = `is no role: ${meant === null ? `there are ${ALL_ROLES.join(', ')}` : `did you mean ${meant}?`}`
    return [{ path: `adminAuth.roles.${role}`, message, severity: 'error' as const }]
  })

/** `adminAuth` (document 3, "Authentication"): who may use the admin API. */
export const adminBlock = {
  path: 'adminAuth',
  feature: 'admin',
  built: true,
  schema: Type.Object({
    mode: Type.Enum(['token', 'oidc', 'both'], {
      default: 'token',
      description:
        '`token` (static `PLAT_ADMIN_TOKEN` only), `oidc` (OIDC bearer tokens only), `both` (OIDC plus static token as break-glass).',
    }),
    roles: Type.Record(Type.String(), groups(), {
      default: {},
      description: 'Groups granting a role everywhere; an entry `user:<name>` grants one user.',
    }),
    namespaceRoles: Type.Record(Type.String(), Type.Record(Type.String(), groups()), {
      default: {},
      built: false,
      description: 'Per-namespace roles.',
    }),
    devTokenApprovers: Type.Boolean({
      default: false,
      description: 'Lets the static token decide approvals. Development only; never in production.',
    }),
  }),
  rules: [rolesAreKnown],
} satisfies ConfigBlock

/** Issuer and audience say whose tokens count. */
const issuerInOidc: Rule = ({ issuer, audience }, { adminAuth }) => {
  const mode = typeof adminAuth === 'object' && adminAuth !== null && 'mode' in adminAuth ? adminAuth.mode : 'token'
  if (mode === 'token') return []
  return Object.entries({ issuer, audience }).flatMap(([name, value]) =>
    value === ''
      ? [{ path: `adminAuth.oidc.${name}`, message: `is required in mode ${String(mode)}`, severity: 'error' as const }]
      : [],
  )
}

/** `adminAuth.oidc` (document 3): people with tokens of an identity provider. */
export const adminOidcBlock = {
  path: 'adminAuth.oidc',
  feature: 'admin',
  built: true,
  schema: Type.Object({
    issuer: key.url('Issuer; required in modes `oidc` and `both`.'),
    audience: key.text('Expected audience; required in modes `oidc` and `both`.'),
    jwksURL: key.url('Default discovery.'),
    jwksRefreshSeconds: key.seconds('How often the keys are fetched again.', 300),
    usernameClaim: key.text('Approver name in the ledger; default `preferred_username`, then `email`, then `sub`.'),
    groupsClaim: key.text('Dotted paths allowed.', 'groups'),
    algorithms: Type.Array(Type.Enum(['RS256', 'ES256', 'EdDSA']), {
      default: ['RS256', 'ES256', 'EdDSA'],
      minItems: 1,
      description: 'Accepted signatures.',
    }),
    caFile: key.file('Authorities of the issuer.'),
    leewaySeconds: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Skew on `exp` and `nbf`; default `identity.leewaySeconds`.' }),
    ),
    clientID: key.text('Public value of `GET /v1/auth/config`.'),
    scopes: key.texts('Public value of `GET /v1/auth/config`.'),
  }),
  rules: [issuerInOidc],
} satisfies ConfigBlock
