import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Number of files with sockets that share a process: a tenth of the starts, and a hanging file does not delay the others for long. */
const GROUP_FILES = 8

/** Splits sorted files into groups of neighbours, of nearly equal size. */
export function groupsOf(files: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(files.length / GROUP_FILES)
  return Array.from({ length: count }, (_, at) =>
    files.slice(Math.floor((at * files.length) / count), Math.floor(((at + 1) * files.length) / count)),
  )
}

/** Writes a module that runs these files in one process, and returns its path. */
export function writeGroup(folder: string, name: string, files: readonly string[]): string {
  const file = path.join(folder, `${name}.mjs`)
  const together = pathToFileURL(path.join(import.meta.dirname, 'together.ts')).href
  writeFileSync(
    file,
    `import { runTogether } from ${JSON.stringify(together)}\nrunTogether(${JSON.stringify(files)})\n`,
  )
  return file
}
