package orders;

import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Spring configures its clients of Kafka from the properties alone. */
@SpringBootApplication
class Application {}
