import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@plat/core'
import { budgetCurrencyOf } from '@plat/gateway'
import { startRender } from '@plat/operator'
import { silentLog } from '@plat/process'
import { createFileStore } from '@plat/resources'
import { homeOf } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { gatewayKeys } from '../up/up-config.ts'

/** Exit code where something is refused, as of `plat config validate`. */
const INVALID = 3

/**
 * `plat validate`: what `plat up` would refuse of the resources of a directory, in its words, without starting anything. Writes nothing
 * into the directory.
 * @returns 0 all of them are in force, 3 something is refused
 */
export async function validateResources({ dir }: { readonly dir: string }, output: Output): Promise<number> {
  const home = homeOf(dir)
  const resources = join(home.dir, 'resources')
  if (!existsSync(resources)) throw new CommandError(`${home.dir} has no resources/ folder`)
  const keys = await gatewayKeys(home, { listen: '127.0.0.1:8080', identityURL: 'http://127.0.0.1:8081' })
  const scratch = await mkdtemp(join(tmpdir(), 'plat-validate-'))
  const using = { clock: systemClock, log: silentLog }
  const store = createFileStore({ dir: resources, stateDir: join(scratch, 'state'), ...using })
  try {
    const render = await startRender({
      store,
      outDir: join(scratch, 'rendered'),
      credentialsDir: join(scratch, 'credentials'),
      secretsDir: home.secrets,
      configMapsDir: home.configMaps,
      currency: await budgetCurrencyOf(keys),
      ...using,
    })
    await render.stop()
    const refused = render.refused()
    for (const line of refused) output.out(line)
    for (const line of render.outgrown()) output.err(`warning: ${line}`)
    if (refused.length > 0) return INVALID
    output.out(`resources OK: ${resources}`)
    return 0
  } finally {
    store.close()
    await rm(scratch, { recursive: true, force: true })
  }
}
