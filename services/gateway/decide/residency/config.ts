import { defineBlock } from '@plat/config'
import Type from 'typebox'

/** Data residency (docs/spec/gateway.md, "Policies"). */
export const residencyBlock = defineBlock({
  path: '',
  feature: 'residency',
  schema: Type.Object({
    sovereigntyPolicyFile: Type.String({
      default: '',
      file: 'fails closed',
      description:
        'SovereigntyPolicy spec; when set every upstream must comply and all egress uses a residency-checking dialer.',
    }),
  }),
})
