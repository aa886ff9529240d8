import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@plat/core'
import { budgetCurrencyOf } from '@plat/gateway'
import { type Render, startRender } from '@plat/operator'
import { silentLog } from '@plat/process'
import { createFileStore, type FileStore } from '@plat/resources'
import type { PlatFolder } from '../shared/home.ts'
import { gatewayKeys } from '../up/up-config.ts'
import { type CheckedGateway, checkGatewayKeys } from './gateway-file.ts'

/** The resources and the configuration of a directory, as `plat up` would read them. */
export interface RenderedFolder {
  /** Holds the files that the gateway would read; removed afterwards. */
  readonly rendered: string
  readonly store: FileStore
  readonly render: Render
  readonly gateway: CheckedGateway
}

/** Renders the resources of a directory into a temporary folder while `use` runs. Writes nothing into the directory. */
export async function withRendered<T>(home: PlatFolder, use: (folder: RenderedFolder) => Promise<T>): Promise<T> {
  const keys = await gatewayKeys(home, { listen: '127.0.0.1:8080', identityURL: 'http://127.0.0.1:8081' })
  const scratch = await mkdtemp(join(tmpdir(), 'plat-rendered-'))
  const using = { clock: systemClock, log: silentLog }
  const store = createFileStore({ dir: join(home.dir, 'resources'), stateDir: join(scratch, 'state'), ...using })
  try {
    const rendered = join(scratch, 'rendered')
    const render = await startRender({
      store,
      outDir: rendered,
      credentialsDir: join(scratch, 'credentials'),
      secretsDir: home.secrets,
      configMapsDir: home.configMaps,
      documentsDir: home.dir,
      currency: await budgetCurrencyOf(keys),
      ...using,
    })
    await render.stop()
    const gateway = checkGatewayKeys({ home, keys, rendered, env: process.env })
    return await use({ rendered, store, render, gateway })
  } finally {
    store.close()
    await rm(scratch, { recursive: true, force: true })
  }
}
