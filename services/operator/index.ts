export type { Declared } from './render/declared.ts'
export { renderPolicies } from './render/policies.ts'
export { type Render, type RenderOptions, startRender } from './render/start.ts'
export { renderUpstreams } from './render/upstreams.ts'
