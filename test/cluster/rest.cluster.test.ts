import { readFileSync } from 'node:fs'
import { after, before } from 'node:test'
import { restConformance } from '@plat/resources/rest-conformance'
import { restFace } from '@plat/testkit/kubernetes/rest-face'
import { ADMIN_TOKEN } from './api-server.ts'
import { type Cluster, startCluster } from './plat.ts'

let cluster: Cluster

before(async () => {
  cluster = await startCluster()
})

after(async () => {
  await cluster?.stop()
})

restConformance('a real API server', async () =>
  restFace({ url: cluster.server.url, ca: readFileSync(cluster.server.caFile), token: ADMIN_TOKEN }),
)
