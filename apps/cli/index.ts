export { type Home, type HomeEnv, homeOf } from './home.ts'
export { type Output, terminal } from './output.ts'
export { screen, startUp, type Up, type UpOptions } from './up.ts'
