import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Where data may go (docs/spec/gateway.md, "Policies"). */
export const residencyBlock = {
  path: '',
  feature: 'residency',
  built: true,
  schema: Type.Object({
    sovereigntyPolicyFile: Type.String({
      default: '',
      file: 'fails closed',
      description:
        'SovereigntyPolicy spec; when set every upstream must comply and all egress uses a residency-checking dialer.',
    }),
  }),
} satisfies ConfigBlock
