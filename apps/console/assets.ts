import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ConsoleAsset, LIST, readAssets, writeAssets } from './asset.ts'

/** The files of a package. A clone has none: it builds them. */
const PACKED = new URL('./built/', import.meta.url)

/** Present in a clone alone. */
const SOURCES = new URL('./app/main.tsx', import.meta.url)

/**
 * Returns the files of the console. In a clone the first call builds them and stores them in `.cache/console`, until their sources change.
 * Throws if a source has an error.
 */
export async function consoleAssets(): Promise<readonly ConsoleAsset[]> {
  const packed = fileURLToPath(PACKED)
  if (existsSync(path.join(packed, LIST))) return readAssets(packed)
  const { buildConsole, digestOfSources } = await import('./build.ts')
  const home = path.dirname(path.dirname(fileURLToPath(SOURCES)))
  const cached = path.resolve(home, '../../.cache/console', digestOfSources(home))
  if (!existsSync(path.join(cached, LIST))) await storeAssets(cached, (await buildConsole(home)).assets)
  return readAssets(cached)
}

/** Writes the files into a folder that appears when it is complete: two processes may do so at once. */
async function storeAssets(folder: string, assets: readonly ConsoleAsset[]): Promise<void> {
  await mkdir(path.dirname(folder), { recursive: true })
  const building = await mkdtemp(`${folder}-`)
  await writeAssets(building, assets)
  try {
    await rename(building, folder)
  } catch (error) {
    await rm(building, { recursive: true, force: true })
    if (!existsSync(path.join(folder, LIST))) throw error
  }
}
