import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** `configSync` (document 3): files straight from ConfigMaps of the operator. */
export const configSyncBlock = {
  path: 'configSync',
  feature: 'config-sync',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Read ConfigMaps of the operator from the API (about 1 s).'),
    namespace: key.text('Default `$POD_NAMESPACE`.'),
    pollMillis: key.millis('How often.', 1000),
    apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
    tokenFile: key.file('Token for it; in-cluster when empty.'),
    caFile: key.file('Its authorities; in-cluster when empty.'),
    items: key.groups(
      {
        configMap: key.needed('Name of the ConfigMap.'),
        key: key.needed('Key in it.'),
        path: key.needed('File that is written, atomically.'),
        optional: key.flag('It may be absent.'),
      },
      'What is read.',
    ),
  }),
} satisfies ConfigBlock
