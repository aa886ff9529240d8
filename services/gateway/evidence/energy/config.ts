import { defineBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `energy` (docs/spec/gateway.md): energy and carbon estimates. */
export const energyBlock = defineBlock({
  path: 'energy',
  feature: 'energy',
  schema: Type.Object({
    enabled: key.flag('Estimate energy and carbon; a `file` implies it.'),
    file: key.file('Table of factors by model and region, hot-reloaded; without it nothing is estimated.'),
    defaultRegion: key.text('Region of calls whose endpoint has none.'),
  }),
  rules: [requires('energy', ['file'], ({ enabled }) => enabled === true, 'with energy.enabled')],
})
