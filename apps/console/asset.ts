import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'

/** A file of the console, as the gateway serves it below `/console/`. */
export interface ConsoleAsset {
  /** `index.html`, or `assets/<name>.<hash>.<extension>`. */
  readonly path: string
  /** The media type, with its charset. */
  readonly type: string
  readonly bytes: Buffer
  /** Null where compression saves nothing. */
  readonly brotli: Buffer | null
  readonly gzip: Buffer | null
  /** Whether the name changes with the content. */
  readonly immutable: boolean
}

/** The list of a folder of built files. It is written last. */
export const LIST = 'assets.json'

/** Writes the files, their compressed forms and their list into a folder. */
export async function writeAssets(folder: string, assets: readonly ConsoleAsset[]): Promise<void> {
  await mkdir(path.join(folder, 'assets'), { recursive: true })
  const list = assets.map(({ path: name, type, immutable, brotli, gzip }) => {
    return { path: name, type, immutable, brotli: brotli !== null, gzip: gzip !== null }
  })
  for (const { path: name, bytes, brotli, gzip } of assets) {
    await writeFile(path.join(folder, name), bytes)
    if (brotli !== null) await writeFile(path.join(folder, `${name}.br`), brotli)
    if (gzip !== null) await writeFile(path.join(folder, `${name}.gz`), gzip)
  }
  await writeFile(path.join(folder, LIST), `${JSON.stringify(list, null, 2)}\n`)
}

interface ListedAsset {
  readonly path: string
  readonly type: string
  readonly immutable: boolean
  readonly brotli: boolean
  readonly gzip: boolean
}

export async function readAssets(folder: string): Promise<readonly ConsoleAsset[]> {
  const list: readonly ListedAsset[] = JSON.parse(await readFile(path.join(folder, LIST), 'utf8'))
  return Promise.all(
    list.map(async ({ path: name, type, immutable, brotli, gzip }) => ({
      path: name,
      type,
      immutable,
      bytes: await readFile(path.join(folder, name)),
      brotli: brotli ? await readFile(path.join(folder, `${name}.br`)) : null,
      gzip: gzip ? await readFile(path.join(folder, `${name}.gz`)) : null,
    })),
  )
}
