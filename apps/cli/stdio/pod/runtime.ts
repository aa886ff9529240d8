import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Made by `tools/package/stdio.ts`. */
const BUNDLE = new URL('built/bridge.mjs', import.meta.url)

/** Programs that load others: `ld-linux-x86-64.so.2`, `ld-linux-aarch64.so.1`, `ld-musl-x86_64.so.1`. */
const LOADER = /^ld-(?:linux|musl)[\w.-]*\.so\.\d+$/

const READ_AND_RUN = 0o555

/**
 * Copies the bridge with everything that it runs on into a folder, which may have an earlier copy: Node, its shared libraries and their loader. So it runs in every
 * Linux image of the same processor, also in one without a C library or with another. Throws if the bridge was not built.
 */
export function copyRuntime(to: string, bundle: string = fileURLToPath(BUNDLE)): void {
  if (!existsSync(bundle)) throw new Error(`${bundle} is missing: run node tools/package/stdio.ts`)
  const libraries = sharedLibraries()
  const loader = libraries.find((file) => LOADER.test(basename(file)))
  if (loader === undefined) throw new Error('the loader of shared libraries is not known: only Linux is supported')
  mkdirSync(join(to, 'lib'), { recursive: true })
  const copy = (file: string, name: string) => {
    const target = join(to, name)
    // A container that starts again may not write to its read-only copy.
    rmSync(target, { force: true })
    copyFileSync(file, target)
    chmodSync(target, READ_AND_RUN)
  }
  copy(loader, 'loader')
  copy(process.execPath, 'node')
  copy(bundle, 'bridge.mjs')
  for (const file of libraries) copy(file, join('lib', basename(file)))
}

/** Files of the libraries that this process has loaded; that of the kernel has none. */
function sharedLibraries(): readonly string[] {
  const report: { sharedObjects?: readonly string[] } = JSON.parse(JSON.stringify(process.report.getReport()))
  return (report.sharedObjects ?? []).filter((file) => file.startsWith('/') && file !== process.execPath)
}
