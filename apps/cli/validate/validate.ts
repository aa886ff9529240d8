import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT } from '../shared/exit-codes.ts'
import { homeOf, type PlatFolder } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { locateProblems, locateRefused, locateWarnings } from './locate.ts'
import { withRendered } from './rendered.ts'
import { readSurroundings } from './warnings/surroundings.ts'
import { findWarnings } from './warnings/warnings.ts'

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
  if (!existsSync(resources))
    throw new CommandError(
      `${home.dir} has no resources/ folder; name a directory that has one, or write one with plat init`,
    )
  const { errors, warnings } = await findingsOf(home)
  for (const line of errors) output.out(line)
  for (const line of warnings) output.err(`warning: ${line}`)
  if (errors.length > 0 || (strict && warnings.length > 0)) return EXIT.found
  output.out(`resources OK: ${resources}`)
  return 0
}

/** Finds what is refused and what is probably not meant, without a running plat. */
export function findingsOf(home: PlatFolder): Promise<Findings> {
  return withRendered(home, async ({ store, render, gateway }) => {
    const { config } = gateway
    const surroundings = { declared: render.declared(), dir: home.dir, secretsDir: home.secrets, env: process.env }
    const found = config === null ? [] : await findWarnings(await readSurroundings({ ...surroundings, config }))
    return {
      errors: [...(await locateProblems(home.dir, gateway.errors)), ...(await locateRefused(store, render.refused()))],
      warnings: [
        ...(await locateProblems(home.dir, gateway.warnings)),
        ...(await locateWarnings(store, home.dir, found)),
        ...render.outgrown(),
      ],
    }
  })
}
