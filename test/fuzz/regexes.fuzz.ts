import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { type Regex, regexesOf } from '../../tools/tidy/regexes.ts'
import { readSource } from '../../tools/tidy/source.ts'
import { slowAttack } from './regex-attack.ts'
import type { FuzzTarget } from './target.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Every regular expression of product code, attacked with repetitions of what it matches. */
export const target: FuzzTarget = {
  name: 'cost/regular expressions',
  async run(seconds) {
    const failures: string[] = []
    const known = new Set<string>()
    const until = process.cpuUsage().user + seconds * 1_000_000
    for (const { place, pattern, flags } of productRegexes()) {
      if (pattern === null || known.has(`/${pattern}/${flags}`)) continue
      if (process.cpuUsage().user > until) break
      known.add(`/${pattern}/${flags}`)
      const attack = slowAttack(pattern, flags)
      if (attack !== null) failures.push(`${place} /${pattern}/${flags}: ${attack}`)
    }
    return { cases: known.size, failures }
  },
}

function productRegexes(): readonly (Regex & { readonly place: string })[] {
  const files = globSync('{packages,services,apps,sdk}/**/*.ts', {
    cwd: ROOT,
    exclude: (name) => ['node_modules', 'dist', 'testkit', 'fixtures', 'conformance'].includes(path.basename(name)),
  })
  return files.sort().flatMap((file) => {
    const source = readSource(file, readFileSync(path.join(ROOT, file), 'utf8'))
    if (source.isTest) return []
    return regexesOf(source).map((regex) => ({ ...regex, place: file }))
  })
}
