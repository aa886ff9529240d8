import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** The licence (document 3). */
export const licenceBlock = {
  path: '',
  feature: 'licence',
  built: false,
  schema: Type.Object({
    licenseFile: Type.String({
      default: '',
      description: 'Licence; only switches paid features, never affects agent traffic; Community when empty.',
    }),
  }),
} satisfies ConfigBlock
