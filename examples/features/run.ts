/** `npm run example -- <name>` runs one example; without a name it lists them. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** The examples by name, with their first sentence and what they print. */
export function examples(): readonly { readonly name: string; readonly summary: string; readonly prints: string }[] {
  return readdirSync(import.meta.dirname).flatMap((file) => {
    const text = file.endsWith('.ts') ? readFileSync(path.join(import.meta.dirname, file), 'utf8') : ''
    const [, summary = '', prints = ''] =
      /^\/\*\*\n \* (.*)\n \*\n \* Prints:\n((?: \* {3}.*\n)+) \*\//.exec(text) ?? []
    return prints === ''
      ? []
      : [{ name: path.basename(file, '.ts'), summary, prints: prints.replaceAll(/^ \* {3}/gm, '') }]
  })
}

if (import.meta.main) {
  const [name] = process.argv.slice(2)
  if (examples().some((one) => one.name === name)) await import(`./${name}.ts`)
  else {
    for (const { name: known, summary } of examples()) console.log(`${known.padEnd(18)} ${summary}`)
    if (name !== undefined) console.error(`no example ${name}: use one of the names above`)
    process.exitCode = name === undefined ? 0 : 2
  }
}
