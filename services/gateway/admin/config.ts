import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

const groups = () => Type.Array(Type.String({ minLength: 1 }))

/** `adminAuth` (document 3, "Authentication"): who may use the admin API. */
export const adminBlock = {
  path: 'adminAuth',
  feature: 'admin',
  built: true,
  schema: Type.Object({
    mode: Type.Enum(['token', 'oidc', 'both'], {
      default: 'token',
      built: false,
      description:
        '`token` (static `PLAT_ADMIN_TOKEN` only), `oidc` (OIDC bearer tokens only), `both` (OIDC plus static token as break-glass).',
    }),
    roles: Type.Record(Type.String(), groups(), {
      default: {},
      built: false,
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
} satisfies ConfigBlock
