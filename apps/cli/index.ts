export { type Home, type HomeEnv, homeOf } from './home.ts'
export { CommandError, type Output, terminal } from './output.ts'
export { screen, startUp, tellRefused, type Up, type UpOptions } from './up.ts'
