import { canonicalJson } from '@plat/core'
import type { Manifest } from '../kinds/kinds.ts'

/** Returns whether two objects are equal, except for members that the store adds. */
export function sameManifest(held: Manifest, given: Manifest): boolean {
  return canonicalJson(written(held)) === canonicalJson(written(given))
}

function written({ metadata, spec }: Manifest): unknown {
  const { name, namespace, labels, annotations } = metadata
  return { name, namespace, labels, annotations, spec }
}
