import { defineBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `sandboxUsage` (docs/spec/gateway.md): usage reports of sandboxes. */
export const sandboxUsageBlock = defineBlock({
  path: 'sandboxUsage',
  feature: 'sandbox-usage',
  schema: Type.Object({
    enabled: key.flag('Accept `POST /v1/usage/sandbox` reports.'),
    reporters: Type.Array(Type.String({ pattern: '^system:serviceaccount:[^:]+:[^:]+$' }), {
      default: [],
      description: 'Service-account usernames `system:serviceaccount:<ns>:<name>`.',
    }),
    audience: key.text('Audience of the reporter token.', 'plat-sandbox-usage'),
  }),
  rules: [
    requires('sandboxUsage', ['reporters', 'audience'], ({ enabled }) => enabled === true, 'with sandboxUsage.enabled'),
  ],
})
