import { defineBlock, key, memberPath, type Problem, type RuleOf } from '@plat/config'
import { closest, isObject } from '@plat/core'
import { isTenantName } from '@plat/tokens'
import Type from 'typebox'
import { ALL_ROLES } from './roles.ts'
import { isRequired, STEP_UP_ACTIONS } from './step-up.ts'

const groups = () => Type.Array(Type.String({ minLength: 1 }))

const schema = Type.Object({
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
    description: 'Per-namespace roles.',
  }),
  tenantRoles: Type.Record(Type.String(), Type.Record(Type.String(), groups()), {
    default: {},
    description: 'Roles in all namespaces of a tenant of `tenantsFile`, and in its ledger, by the name of the tenant.',
  }),
  people: Type.Record(
    Type.String({ minLength: 1 }),
    Type.Object({
      issuer: key.needed('Issuer of the identity provider that knows the person.'),
      subject: key.needed('`sub` of the person there.'),
      aliases: key.texts('Other names of the person: of sessions, e-mail addresses.'),
    }),
    {
      default: {},
      description:
        'People by name, as sessions and `userMap` name them: one person counts once in every role. A person who is known by name only never counts beside another approver.',
    },
  ),
  devTokenApprovers: Type.Boolean({
    default: false,
    description: 'Lets the static token decide approvals. Development only; never in production.',
  }),
})

/** An unknown role would silently grant nothing. */
const rolesAreKnown: RuleOf<typeof schema> = ({ roles, namespaceRoles = {}, tenantRoles = {} }) => [
  ...rolesIn('adminAuth.roles', roles),
  ...Object.entries(tenantRoles).flatMap(([tenant, table]) => rolesIn(`adminAuth.tenantRoles.${tenant}`, table)),
  ...Object.entries(namespaceRoles).flatMap(([namespace, table]) =>
    rolesIn(`adminAuth.namespaceRoles.${namespace}`, table),
  ),
]

function rolesIn(path: string, table: object = {}): readonly Problem[] {
  return Object.keys(table).flatMap((role) => {
    if (ALL_ROLES.some((known) => known === role)) return []
    const meant = closest(role, ALL_ROLES)
    const there = meant === null ? `there are ${ALL_ROLES.join(', ')}` : `did you mean ${meant}?`
    return [problem(`${path}.${role}`, `is not a role: ${there}`, 'error')]
  })
}

function problem(path: string, message: string, severity: Problem['severity']): Problem {
  return { path, message, severity }
}

/** A name or subject of two people would make them one, and neither could approve beside the other. */
const peopleAreDistinct: RuleOf<typeof schema> = ({ people = {} }) => {
  const seen = new Map<string, string>()
  return Object.entries(people).flatMap(([name, person]) => {
    if (person === undefined) return []
    const all = [name, ...(person.aliases ?? [])].map((alias) => `name ${String(alias).toLowerCase()}`)
    return [...new Set([...all, `subject ${String(person.subject)} of ${String(person.issuer)}`])].flatMap((mark) => {
      const other = seen.get(mark)
      seen.set(mark, name)
      return other === undefined
        ? []
        : [problem(memberPath('adminAuth.people', name), `${mark} belongs to ${other} already`, 'error')]
    })
  })
}

/** Namespaces are named, not matched: an entry with a glob would grant nothing. */
const namespacesAreNames: RuleOf<typeof schema> = ({ namespaceRoles = {} }) =>
  Object.keys(namespaceRoles).flatMap((namespace) =>
    /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)
      ? []
      : [problem(`adminAuth.namespaceRoles.${namespace}`, 'is not a name of a namespace', 'error')],
  )

/** Without the list of tenants, or with a name that no tenant can have, an entry would grant nothing. */
const tenantsAreNames: RuleOf<typeof schema> = ({ tenantRoles = {} }, { tenantsFile = '' }) => {
  const names = Object.keys(tenantRoles)
  if (names.length > 0 && tenantsFile === '') return [problem('adminAuth.tenantRoles', 'needs tenantsFile', 'error')]
  return names.flatMap((tenant) =>
    isTenantName(tenant) ? [] : [problem(`adminAuth.tenantRoles.${tenant}`, 'is not a name of a tenant', 'error')],
  )
}

/** `adminAuth` (docs/spec/gateway.md, "Authentication"): who may use the admin API. */
export const adminBlock = defineBlock({
  path: 'adminAuth',
  feature: 'admin',
  schema,
  rules: [rolesAreKnown, namespacesAreNames, tenantsAreNames, peopleAreDistinct],
})

const oidcSchema = Type.Object({
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
  resource: key.text('Resource indicator (RFC 8707) that `plat login` sends; public value of `GET /v1/auth/config`.'),
})

/** Issuer and audience say whose tokens count. */
const issuerInOidc: RuleOf<typeof oidcSchema> = ({ issuer, audience }, { adminAuth }) => {
  const mode = isObject(adminAuth) ? adminAuth.mode : 'token'
  if (mode === 'token') return []
  return Object.entries({ issuer, audience }).flatMap(([name, value]) =>
    value === ''
      ? [{ path: `adminAuth.oidc.${name}`, message: `is required in mode ${String(mode)}`, severity: 'error' as const }]
      : [],
  )
}

/** `adminAuth.oidc` (docs/spec/gateway.md): people with tokens of an identity provider. */
export const adminOidcBlock = defineBlock({
  path: 'adminAuth.oidc',
  feature: 'admin',
  schema: oidcSchema,
  rules: [issuerInOidc],
})

const stepUpRule = (what: string) =>
  key.group(
    {
      acr: key.texts('Accepted values of `acr`; they are requested as `acr_values`. Default any.'),
      amr: key.texts('Methods of which `amr` must contain one, such as `hwk`. Default any.'),
      maxAgeSeconds: key.seconds('Oldest login (`auth_time`); 0: any.', 0, 0),
    },
    what,
  )

const stepUpSchema = Type.Object({
  approve: stepUpRule('To approve a call.'),
  revoke: stepUpRule('To revoke and to lift a revocation.'),
  accept: stepUpRule('To accept the definition of a tool.'),
  view: stepUpRule('To view the browser of a session.'),
  control: stepUpRule('To control the browser of a session.'),
})

/** Only logins of people can be fresh or strong. */
const stepUpHasPeople: RuleOf<typeof stepUpSchema> = (rules, { adminAuth }) => {
  const mode = isObject(adminAuth) ? adminAuth.mode : 'token'
  if (mode === 'oidc' || mode === 'both') return []
  return STEP_UP_ACTIONS.filter((action) => {
    const { acr = [], amr = [], maxAgeSeconds = 0 } = rules[action] ?? {}
    return isRequired({ acr: acr.map(String), amr: amr.map(String), maxAgeSeconds: Number(maxAgeSeconds) })
  }).map((action) => problem(`adminAuth.stepUp.${action}`, 'needs adminAuth.mode oidc or both', 'error'))
}

/** `adminAuth.stepUp`: how people must have logged in for some actions (docs/admin.md). */
export const adminStepUpBlock = defineBlock({
  path: 'adminAuth.stepUp',
  feature: 'admin',
  schema: stepUpSchema,
  rules: [stepUpHasPeople],
})
