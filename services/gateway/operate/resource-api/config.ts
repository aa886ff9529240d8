import { defineBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `resourceAPI` (docs/spec/gateway.md): the resource model without a cluster. */
export const resourceAPIBlock = defineBlock({
  path: 'resourceAPI',
  feature: 'resource-api',
  schema: Type.Object({
    enabled: key.flag('Resource model without a cluster.'),
    dir: key.text('YAML files `<plural>/<namespace>/<name>.yaml`; required when enabled.'),
  }),
  rules: [requires('resourceAPI', ['dir'], ({ enabled }) => enabled === true, 'with resourceAPI.enabled')],
})
