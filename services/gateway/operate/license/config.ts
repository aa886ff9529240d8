import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** The license (docs/spec/gateway.md). */
export const licenseBlock = {
  path: '',
  feature: 'license',
  built: true,
  schema: Type.Object({
    licenseFile: key.file('Licence; only switches paid features, never affects agent traffic; Community when empty.'),
  }),
} satisfies ConfigBlock
