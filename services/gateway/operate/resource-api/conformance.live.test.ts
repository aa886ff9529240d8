import { join } from 'node:path'
import { after, before } from 'node:test'
import { buildInfo, systemClock, systemIds } from '@plat/core'
import { type Listener, listen } from '@plat/http'
import { silentLog } from '@plat/process'
import { restConformance } from '@plat/resources/rest-conformance'
import { restFace } from '@plat/testkit/kubernetes/rest-face'
import { tempFolder } from '@plat/testkit/local'
import { type AdminAuthentication, AdminError } from '../../admin/index.ts'
import { noTenancy } from '../../call/index.ts'
import { createResources } from './index.ts'

const TOKEN = 'a-token-of-the-test'
const basics = { clock: systemClock, ids: systemIds(systemClock), log: silentLog }

const authenticate: AdminAuthentication = (authorization) => {
  if (authorization !== `Bearer ${TOKEN}`) throw new AdminError('unauthenticated', 'another token')
  return {
    by: 'token:admin',
    person: [],
    groups: [],
    roles: new Set(['admin']),
    namespaceRoles: new Map(),
    tenantRoles: new Map(),
    tenancy: noTenancy,
    byToken: true,
  }
}

const resources = createResources({
  config: { resourceAPI: { enabled: true, dir: join(tempFolder(), 'resources') } },
  authenticate,
  ledgers: {
    of: () => ({
      append: async () => ({ seq: 1, hash: '' }),
      enter: (_rec, waiter) => waiter.durable({ seq: 1, hash: '' }),
      head: () => ({ seq: 1, hash: '' }),
      health: 'ok',
      close: async () => {},
    }),
  },
  build: buildInfo('gateway'),
  ...basics,
})
let listener: Listener

before(async () => {
  listener = await listen({ address: '127.0.0.1:0', raw: resources.standalone, ...basics })
})

after(async () => {
  resources.close()
  await listener.close()
})

restConformance('over a socket', async () => restFace({ url: listener.url, token: TOKEN }))
