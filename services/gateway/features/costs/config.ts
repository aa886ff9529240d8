import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** `energy` (document 3): energy and carbon estimates. */
export const energyBlock = {
  path: 'energy',
  feature: 'costs',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Estimate energy and carbon; a `file` implies it.'),
    file: key.file('Factors by model and region.'),
    defaultRegion: key.text('Region of calls that name none.'),
  }),
} satisfies ConfigBlock

/** `sandboxUsage` (document 3): reports of what sandboxes used. */
export const sandboxUsageBlock = {
  path: 'sandboxUsage',
  feature: 'costs',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Accept `POST /v1/usage/sandbox` reports.'),
    reporters: Type.Array(Type.String({ pattern: '^system:serviceaccount:[^:]+:[^:]+$' }), {
      default: [],
      description: 'Service-account usernames `system:serviceaccount:<ns>:<name>`.',
    }),
    audience: key.text('Audience of the reporter token.', 'plat-sandbox-usage'),
  }),
} satisfies ConfigBlock
