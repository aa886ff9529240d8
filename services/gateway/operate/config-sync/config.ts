import path from 'node:path'
import { defineBlock, key, type Problem, type RuleOf } from '@plat/config'
import Type, { type Static } from 'typebox'

const schema = Type.Object({
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
})

/** Two items with one path would overwrite each other, and a relative path depends on the working directory. */
const pathsAreOwn: RuleOf<typeof schema> = ({ items = [] }) => {
  const seen = new Set<string>()
  return items.flatMap((item, index): Problem[] => {
    const file = item?.path ?? ''
    if (file === '') return []
    const problem = (message: string): Problem => ({
      path: `configSync.items[${index}].path`,
      message,
      severity: 'error',
    })
    if (!path.isAbsolute(file)) return [problem('must be absolute')]
    const normal = path.normalize(file)
    if (seen.has(normal)) return [problem('is written by an item before this one')]
    seen.add(normal)
    return []
  })
}

const somethingIsRead: RuleOf<typeof schema> = ({ enabled, items = [] }) =>
  enabled === true && items.length === 0
    ? [{ path: 'configSync.items', message: 'nothing is read: name what', severity: 'warning' }]
    : []

/** `configSync` (docs/spec/gateway.md): files straight from ConfigMaps of the operator. */
export const configSyncBlock = defineBlock({
  path: 'configSync',
  feature: 'config-sync',
  schema,
  rules: [pathsAreOwn, somethingIsRead],
})

export type ConfigSyncConfig = Readonly<Static<typeof configSyncBlock.schema>>
export type SyncedItem = ConfigSyncConfig['items'][number]
