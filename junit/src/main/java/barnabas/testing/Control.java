package barnabas.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Sends requests to the controls of a broker. */
final class Control {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int OK = 200;

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String url;
    private final String token;

    Control(String url, String token) {
        this.url = url;
        this.token = token;
    }

    JsonNode post(String path, Map<String, ?> body) {
        try {
            return ask("POST", path, JSON.writeValueAsString(body));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    JsonNode get(String path) {
        return ask("GET", path, "");
    }

    JsonNode delete(String path) {
        return ask("DELETE", path, "");
    }

    /** A name as one part of a path. */
    static String quoted(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private JsonNode ask(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/testing/v1/" + path))
            .header("Authorization", "Bearer " + token)
            .method(method, BodyPublishers.ofString(body))
            .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            JsonNode answer = JSON.readTree(response.body());
            if (response.statusCode() != OK) {
                throw new IllegalArgumentException(answer.path("error").asText());
            }
            return answer;
        } catch (IOException error) {
            throw new UncheckedIOException("The broker does not answer.", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while the broker works.", error);
        }
    }
}
