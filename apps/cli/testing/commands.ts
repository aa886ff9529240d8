import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Output } from '../shared/output.ts'

/** Output and exit code of a command. */
export async function printed(command: (output: Output) => Promise<number>): Promise<{ code: number; text: string }> {
  const lines: string[] = []
  const write = (text: string) => void lines.push(text)
  const code = await command({ out: write, err: write })
  return { code, text: lines.join('\n') }
}

/** Writes a resource of namespace `default` where `plat up` in `dir` reads it: `path` is `<plural>/default/<name>.yaml`. */
export async function putResource(dir: string, path: string, kind: string, spec: object): Promise<void> {
  const file = join(dir, 'resources', path)
  await mkdir(dirname(file), { recursive: true })
  const metadata = { name: basename(path, '.yaml'), namespace: 'default' }
  await writeFile(file, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
}
