import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@plat/core'
import { budgetCurrencyOf } from '@plat/gateway'
import { startRender } from '@plat/operator'
import { silentLog } from '@plat/process'
import { createFileStore } from '@plat/resources'
import { homeOf, type PlatFolder } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { gatewayKeys } from '../up/up-config.ts'
import { checkGatewayKeys } from './gateway-file.ts'
import { locateProblems, locateRefused, locateWarnings } from './locate.ts'
import { readSurroundings } from './warnings/surroundings.ts'
import { findWarnings } from './warnings/warnings.ts'

/** Exit code where something is refused, as of `plat config validate`. */
const INVALID = 3

/** Problems of a directory, one line each. */
export interface Findings {
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * `plat validate`: what `plat up` would refuse of a directory, without starting anything, and what it would accept although it is probably
 * not meant. Writes nothing into the directory. `strict`: warnings count as errors.
 * @returns 0 everything is in force, 3 something is refused
 */
export async function validateResources(
  { dir, strict = false }: { readonly dir: string; readonly strict?: boolean },
  output: Output,
): Promise<number> {
  const home = homeOf(dir)
  const resources = join(home.dir, 'resources')
  if (!existsSync(resources)) throw new CommandError(`${home.dir} has no resources/ folder`)
  const { errors, warnings } = await findingsOf(home)
  for (const line of errors) output.out(line)
  for (const line of warnings) output.err(`warning: ${line}`)
  if (errors.length > 0 || (strict && warnings.length > 0)) return INVALID
  output.out(`resources OK: ${resources}`)
  return 0
}

/** Finds what is refused and what is probably not meant, without a running plat. */
export async function findingsOf(home: PlatFolder): Promise<Findings> {
  const keys = await gatewayKeys(home, { listen: '127.0.0.1:8080', identityURL: 'http://127.0.0.1:8081' })
  const scratch = await mkdtemp(join(tmpdir(), 'plat-validate-'))
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
      currency: await budgetCurrencyOf(keys),
      ...using,
    })
    await render.stop()
    const gateway = checkGatewayKeys({ home, keys, rendered, env: process.env })
    const found =
      gateway.config === null
        ? []
        : await findWarnings(
            await readSurroundings({
              declared: render.declared(),
              config: gateway.config,
              secretsDir: home.secrets,
              env: process.env,
            }),
          )
    return {
      errors: [...(await locateProblems(home.dir, gateway.errors)), ...(await locateRefused(store, render.refused()))],
      warnings: [
        ...(await locateProblems(home.dir, gateway.warnings)),
        ...(await locateWarnings(store, home.dir, found)),
        ...render.outgrown(),
      ],
    }
  } finally {
    store.close()
    await rm(scratch, { recursive: true, force: true })
  }
}
