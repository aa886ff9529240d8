import { after, before } from 'node:test'
import { storeConformance } from '@plat/resources/conformance'
import { createKubernetesStore } from '@plat/resources/kubernetes'
import { type Cluster, startCluster } from './plat.ts'

let cluster: Cluster

before(async () => {
  cluster = await startCluster()
  await cluster.server.ask('POST', '/api/v1/namespaces', { metadata: { name: 'other' } })
})

after(async () => {
  await cluster?.stop()
})

storeConformance('the store of a cluster', async () => {
  const store = createKubernetesStore({ api: cluster.api, statusOwner: 'test-status' })
  return {
    store,
    async close() {
      const { items } = await store.list('MCPServer', {})
      for (const { metadata } of items) await store.remove('MCPServer', metadata)
    },
  }
})
