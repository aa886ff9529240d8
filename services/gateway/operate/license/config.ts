import { defineBlock, key } from '@plat/config'
import Type from 'typebox'

/** The license (docs/spec/gateway.md). */
export const licenseBlock = defineBlock({
  path: '',
  feature: 'license',
  schema: Type.Object({
    licenseFile: key.file('Licence; only switches paid features, never affects agent traffic; Community when empty.'),
  }),
})
